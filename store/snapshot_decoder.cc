#include "store/snapshot_decoder.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "ir/rewriter.h"
#include "ir/verify.h"
#include "store/database/bytes.h"
#include "store/database/hash.h"
#include "store/snapshot_format.h"
#include "store/table_decoder.h"

namespace strata {
namespace {

using namespace snapshot_format;

class Decoder {
 public:
  Decoder(uint32_t root, SnapshotSources sources) : root_(root), sources_(sources) {}

  Result<std::unique_ptr<Module>> Decode() {
    STRATA_TRY(const std::string_view root_bytes, sources_.roots.Get(root_));
    ByteReader root(root_bytes);
    struct Body {
      Graph* graph;
      size_t nodes;
      std::vector<uint32_t> chunks;
    };
    std::vector<Body> bodies;
    // All graphs exist before the first node that refers to one.
    const size_t num_graphs = root.Count();
    for (size_t i = 0; i < num_graphs && root.ok() && !error_; ++i) {
      const StrId name = tables_.String(root);
      const uint8_t flags = root.Byte();
      Body body;
      body.nodes = root.Varint();
      uint32_t chunk = 0;
      const size_t num_chunks = root.Count();
      for (size_t k = 0; k < num_chunks; ++k) {
        chunk += static_cast<uint32_t>(root.Signed());
        body.chunks.push_back(chunk);
      }
      body.graph = &module_->AddGraph(module_->str(name), (flags & kIsBody) != 0);
      if ((flags & kIsForeign) != 0) module_->MarkForeign(body.graph->id());
      bodies.push_back(std::move(body));
    }
    tables_.Symbols(root);
    if (!root.AtEnd() || bodies.empty()) FailRoot("its root does not decode");
    for (const Body& body : bodies) {
      if (error_) break;
      DecodeGraph(*body.graph, body.nodes, body.chunks);
    }
    if (error_) return std::move(*error_);
    // Bodies that hold each other would send every walk over them round and round.
    if (const Status sound = CheckBodies(*module_); !sound) FailRoot(sound.error().message());
    if (error_) return std::move(*error_);
    return std::move(module_);
  }

 private:
  /// A node that is being read. Its parts stay in vectors that are used again for the next.
  struct NodeParts {
    NodeKind kind = NodeKind::kCall;
    bool returns_tuple = false;
    Phase phase = Phase::kUnknown;
    StrId op, module, name;
    std::vector<Arg> args;
    std::vector<NamedArg> kwargs;
    std::vector<TypeId> types;
    std::vector<std::pair<uint32_t, uint64_t>> aliases;  // result index + 1, stable id
    std::vector<StrId> element_names;
  };

  void DecodeGraph(Graph& graph, size_t expected_nodes, const std::vector<uint32_t>& chunks) {
    std::vector<uint32_t> versions;
    for (uint32_t chunk : chunks) {
      std::string_view bytes;
      if (!GetRecord(sources_.chunks, chunk, bytes, error_)) return;
      ByteReader reader(bytes);
      uint32_t version = 0;
      while (reader.left() > 0) {
        version += static_cast<uint32_t>(reader.Signed());
        versions.push_back(version);
      }
      if (!reader.ok()) return Fail(sources_.chunks.Damaged(chunk, "its bytes do not decode"));
      if (versions.size() > expected_nodes) break;
    }
    if (versions.size() != expected_nodes) {
      return FailRoot("its chunks hold another number of nodes");
    }

    graph_ = &graph;
    nodes_.clear();
    places_ = StableIdIndex(versions.size());
    std::vector<std::string_view> records(versions.size());
    for (size_t i = 0; i < versions.size(); ++i) {
      if (!GetRecord(sources_.nodes, versions[i], records[i], error_)) return;
      const uint64_t stable_id = ByteReader(records[i]).Varint();
      if (stable_id == 0 || !places_.Emplace(stable_id, static_cast<uint32_t>(i)).second) {
        return Fail(sources_.nodes.Damaged(versions[i], "its stable id occurs twice"));
      }
    }
    Rewriter rewriter(graph);
    rewriter_ = &rewriter;
    std::vector<size_t> forward;  // nodes that read a later one: only broken graphs have them
    for (size_t i = 0; i < versions.size(); ++i) {
      version_ = versions[i];
      reads_later_ = false;
      DecodeNode(records[i], std::nullopt);
      if (error_) return;
      if (reads_later_) forward.push_back(i);
    }
    for (size_t i : forward) {
      version_ = versions[i];
      DecodeNode(records[i], nodes_[i]);
      if (error_) return;
    }
  }

  /// Makes the node, or, when it is made already, gives it its operands.
  void DecodeNode(std::string_view bytes, std::optional<NodeId> made) {
    ByteReader in(bytes);
    ReadParts(in);
    if (error_) return;
    const NodeParts& parts = parts_;
    const bool is_second_output =
        parts.kind == NodeKind::kOutput && !made && graph_->output().valid();
    if (!in.ok() || parts.kind > kLastNodeKind || parts.phase > kLastPhase ||
        parts.kwargs.size() > UINT16_MAX || parts.types.size() > UINT16_MAX ||
        !parts.name.valid() || module_->str(parts.name).empty() || is_second_output) {
      return FailNode();
    }
    if (made) {
      rewriter_->SetArgs(*made, parts.args, parts.kwargs);
      return SetAliases(*made);
    }
    const NodeId id = MakeNode();
    nodes_.push_back(id);
    SetAliases(id);
    DecodeMetadata(in, id);
    if (!in.AtEnd()) FailNode();
  }

  /// Reads a record up to its metadata. Counts beyond the record's end leave `in` not ok.
  void ReadParts(ByteReader& in) {
    user_ = in.Varint();
    const uint8_t kind = in.Byte();
    parts_.kind = static_cast<NodeKind>(kind & ~kReturnsTuple);
    parts_.returns_tuple = (kind & kReturnsTuple) != 0;
    parts_.phase = static_cast<Phase>(in.Byte());
    parts_.op = tables_.String(in);
    parts_.module = tables_.String(in);
    parts_.args.clear();
    const size_t num_args = in.Count();
    for (size_t i = 0; i < num_args && in.ok(); ++i)
      parts_.args.push_back(DecodeArg(in, 0));
    parts_.kwargs.clear();
    const size_t num_kwargs = in.Count();
    for (size_t i = 0; i < num_kwargs && in.ok(); ++i) {
      const StrId name = tables_.String(in);
      parts_.kwargs.push_back({name, DecodeArg(in, 0)});
    }
    parts_.types.clear();
    parts_.aliases.clear();
    const size_t num_results = in.Count();
    for (size_t i = 0; i < num_results && in.ok(); ++i) {
      parts_.types.push_back(tables_.Type(in));
      const auto alias_index = static_cast<uint32_t>(in.Bounded(UINT16_MAX));
      parts_.aliases.emplace_back(
          alias_index, alias_index == 0 ? 0 : user_ - static_cast<uint64_t>(in.Signed()));
    }
    parts_.name = tables_.String(in);
    parts_.element_names.clear();
    for (size_t i = 0; i < parts_.types.size(); ++i)
      parts_.element_names.push_back(tables_.String(in));
  }

  NodeId MakeNode() {
    NodeSpec spec;
    spec.kind = parts_.kind;
    spec.op = module_->str(parts_.op);
    spec.args = parts_.args;
    spec.kwargs = parts_.kwargs;
    spec.results = parts_.types;
    spec.returns_tuple = parts_.returns_tuple;
    spec.name = module_->str(parts_.name);
    spec.stable_id = StableId{user_};
    rewriter_->SetCursorBefore(NodeId{});  // the end, also in a graph whose output is not last
    const NodeId id = rewriter_->Create(spec, From::Source());
    if (graph_->node(id).num_results != parts_.types.size()) {
      rewriter_->SetResults(id, parts_.types, spec.returns_tuple);
    }
    rewriter_->SetPhase(id, parts_.phase);
    if (parts_.module.valid()) rewriter_->SetModule(id, module_->str(parts_.module));
    for (size_t i = 0; i < parts_.element_names.size(); ++i) {
      const StrId element = parts_.element_names[i];
      if (element.valid()) {
        rewriter_->SetElementName(graph_->result(id, i), module_->str(element));
      }
    }
    return id;
  }

  void SetAliases(NodeId id) {
    for (size_t i = 0; i < parts_.aliases.size(); ++i) {
      const auto [index, stable_id] = parts_.aliases[i];
      if (index == 0) continue;
      const ValueId base = Operand(stable_id, index - 1);
      if (!base.valid()) continue;
      const ValueId value = graph_->result(id, i);
      if (base == value || graph_->value(base).alias_of.valid()) {
        return FailNode("it aliases a value that is an alias itself");
      }
      rewriter_->SetAlias(value, base);
    }
  }

  void DecodeMetadata(ByteReader& in, NodeId id) {
    if (in.Byte() != 0) {
      SourceLoc loc;
      loc.file = tables_.String(in);
      loc.line = in.Int32();
      loc.function = tables_.String(in);
      loc.code = tables_.String(in);
      rewriter_->SetLoc(id, module_->InternLoc(loc));
    }
    rewriter_->SetSeqNr(id, in.Int32());
    rewriter_->SetTextLine(id, in.Int32());
    rewriter_->SetStream(id, static_cast<uint16_t>(in.Bounded(UINT16_MAX)));
    const size_t num_attributes = in.Count();
    for (size_t i = 0; i < num_attributes && in.ok(); ++i) {
      const StrId key = tables_.String(in);
      const StrId value = tables_.String(in);
      rewriter_->SetAttribute(id, module_->str(key), module_->str(value));
    }
  }

  Arg DecodeArg(ByteReader& in, int depth) {
    const uint8_t code = in.Byte();
    if (code == kFirstResult) return Operand(in, 0);
    if (code > static_cast<uint8_t>(kLastArgKind)) return BadArg(in);
    switch (static_cast<ArgKind>(code)) {
      case ArgKind::kNone:
        return Arg::None();
      case ArgKind::kValue: {
        const auto index = static_cast<uint32_t>(in.Bounded(UINT16_MAX));
        return Operand(in, index);
      }
      case ArgKind::kInt:
        return Arg::Int(in.Signed());
      case ArgKind::kFloat:
        return Arg::Float(in.Double());
      case ArgKind::kBool:
        return Arg::Bool(in.Byte() != 0);
      case ArgKind::kDim:
        return Arg::Dim(tables_.Dim(in));
      case ArgKind::kString:
        return Arg::String(tables_.String(in));
      case ArgKind::kDevice:
        return Arg::Device(tables_.String(in));
      case ArgKind::kRaw:
        return Arg::Raw(tables_.String(in));
      case ArgKind::kDType: {
        const uint8_t dtype = in.Byte();
        return dtype <= static_cast<uint8_t>(kLastDType) ? Arg::DType(static_cast<DType>(dtype))
                                                         : BadArg(in);
      }
      case ArgKind::kGraph: {
        const uint64_t body = in.Varint();
        if (body >= module_->num_graphs()) return BadArg(in);
        return Arg::Graph({static_cast<int32_t>(body)});
      }
      case ArgKind::kList:
      case ArgKind::kTuple:
      case ArgKind::kDict:
      case ArgKind::kCall: {
        if (depth == kMaxDepth) return BadArg(in);
        const size_t count = in.Count();
        std::vector<Arg> elements;
        elements.reserve(count);
        for (size_t i = 0; i < count && in.ok(); ++i)
          elements.push_back(DecodeArg(in, depth + 1));
        return rewriter_->MakeSpan(static_cast<ArgKind>(code), elements);
      }
    }
    return BadArg(in);
  }

  static Arg BadArg(ByteReader& in) {
    in.Fail();
    return {};
  }

  /// The operand whose distance is next in `in`. An operand of a later node starts as None: the
  /// node is decoded again when all nodes are there (see DecodeGraph).
  Arg Operand(ByteReader& in, uint32_t index) {
    const uint64_t stable_id = user_ - static_cast<uint64_t>(in.Signed());
    if (!in.ok()) return {};
    const ValueId value = Operand(stable_id, index);
    return value.valid() ? Arg(value) : Arg::None();
  }

  ValueId Operand(uint64_t stable_id, uint32_t index) {
    const uint32_t* place = places_.Find(stable_id);
    if (place == nullptr) {
      FailNode("it reads a node that is not in the graph");
      return {};
    }
    if (*place >= nodes_.size()) {
      reads_later_ = true;
      return {};
    }
    if (index >= graph_->node(nodes_[*place]).num_results) {
      FailNode("it reads a result that its operand does not have");
      return {};
    }
    return graph_->result(nodes_[*place], index);
  }

  /// The first error stands.
  void Fail(Error error) {
    if (!error_) error_ = std::move(error);
  }
  void FailNode(std::string_view what = "its bytes do not decode") {
    Fail(sources_.nodes.Damaged(version_, what));
  }

  void FailRoot(std::string_view what) { Fail(sources_.roots.Damaged(root_, what)); }

  uint32_t root_;
  SnapshotSources sources_;
  std::optional<Error> error_;
  std::unique_ptr<Module> module_ = std::make_unique<Module>();
  TableDecoder tables_{*module_, sources_.strings, sources_.types, error_};

  // Of the graph that is being read.
  Graph* graph_ = nullptr;
  Rewriter* rewriter_ = nullptr;
  StableIdIndex places_;       // in program order, by stable id
  std::vector<NodeId> nodes_;  // in program order, as far as they are made
  // Of the node that is being read.
  NodeParts parts_;
  uint32_t version_ = 0;
  uint64_t user_ = 0;
  bool reads_later_ = false;
};

}  // namespace

Result<std::unique_ptr<Module>> DecodeSnapshot(uint32_t root, SnapshotSources sources) {
  return Decoder(root, sources).Decode();
}

}  // namespace strata
