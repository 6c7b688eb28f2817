#include "store/snapshot_encoder.h"

#include <algorithm>

#include "store/database/bytes.h"
#include "store/snapshot_format.h"

namespace strata {
namespace {

using namespace snapshot_format;

// Where snapshots share nodes, a chunk of an order list ends after a node whose hash says so, one
// in kChunkNodes on average. So an insertion changes the chunk around it, and the next boundary is
// where it was.
constexpr uint64_t kChunkNodes = 64;
constexpr size_t kMinChunk = 16, kMaxChunk = 256;

constexpr uint64_t kSparseIds = uint64_t{1} << 20;

class Encoder {
 public:
  Encoder(const Module& module, SnapshotPools& pools)
      : module_(module),
        pools_(pools),
        strings_(module.strings().size(), 0),
        types_(module.types().size()),
        dims_(module.dims().size(), kNoDim) {
    if (pools.last_strings.size() < strings_.size()) pools.last_strings.resize(strings_.size());
  }

  Result<EncodedSnapshot> Encode(const Graph& program) {
    CollectGraphs(program);
    size_t nodes = 0;
    for (const Graph* graph : graphs_)
      nodes += static_cast<size_t>(graph->num_nodes());
    StableIdIndex seen(nodes);
    ByteWriter root(snapshot_.root);
    root.Varint(graphs_.size());
    for (const Graph* graph : graphs_) {
      root.Varint(String(graph->name()));
      root.Byte(static_cast<uint8_t>((graph->is_body() ? kIsBody : 0) |
                                     (graph->is_foreign() ? kIsForeign : 0)));
      root.Varint(static_cast<uint64_t>(graph->num_nodes()));
      snapshot_.printed_nodes += graph->num_printed_nodes();
      const size_t first_chunk = snapshot_.chunks.size();
      STRATA_RETURN_IF_ERROR(EncodeNodes(*graph, seen));
      root.Varint(snapshot_.chunks.size() - first_chunk);
      uint32_t before = 0;
      for (size_t i = first_chunk; i < snapshot_.chunks.size(); ++i) {
        root.Signed(int64_t{snapshot_.chunks[i]} - before);
        before = snapshot_.chunks[i];
      }
    }
    EncodeSymbols(root);
    return std::move(snapshot_);
  }

 private:
  /// The program, then the bodies that it refers to, in module order.
  void CollectGraphs(const Graph& program) {
    body_index_.assign(module_.num_graphs(), -1);
    std::vector<GraphId> found = {program.id()};
    body_index_[Index(program.id())] = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      const Graph& graph = module_.graph(found[i]);
      for (NodeId id : graph.nodes()) {
        for (const Arg& arg : graph.args(id))
          CollectBodies(graph, arg, found);
        for (size_t k = 0; k < graph.node(id).num_kwargs; ++k)
          CollectBodies(graph, graph.kwarg(id, k).value, found);
      }
    }
    std::sort(found.begin() + 1, found.end());
    for (size_t i = 0; i < found.size(); ++i) {
      body_index_[Index(found[i])] = static_cast<int32_t>(i);
      graphs_.push_back(&module_.graph(found[i]));
    }
  }

  void CollectBodies(const Graph& graph, const Arg& arg, std::vector<GraphId>& found) {
    if (arg.is_span()) {
      for (const Arg& element : graph.elements(arg))
        CollectBodies(graph, element, found);
    } else if (arg.kind() == ArgKind::kGraph && body_index_[Index(arg.graph())] < 0) {
      body_index_[Index(arg.graph())] = 0;
      found.push_back(arg.graph());
    }
  }

  Status EncodeNodes(const Graph& graph, StableIdIndex& seen) {
    std::vector<uint32_t> chunk;
    for (NodeId id : graph.nodes()) {
      const auto stable_id = static_cast<uint64_t>(graph.node(id).stable_id);
      if (!seen.Emplace(stable_id, static_cast<uint32_t>(seen.size())).second) {
        return Error(ErrorCode::kInvalid,
                     "two nodes have one stable id: {}, node '{}': make nodes through Rewriter",
                     graph.name_text(), graph.name(id));
      }
      record_.clear();
      const size_t head_size = EncodeNode(graph, id);
      if (too_deep_) {
        return Error(ErrorCode::kUnsupported,
                     "arguments nested over {} deep: {}, node '{}': split the node", kMaxDepth,
                     graph.name_text(), graph.name(id));
      }
      const PoolWriter::Interned version = Version(stable_id);
      chunk.push_back(version.id);
      bool ends_chunk = chunk.size() == kMaxChunk;
      if (pools_.shares_nodes) {
        if (version.is_new) pools_.node_facts.push_back(FactsOf(graph, id, head_size));
        const bool is_boundary = pools_.facts(version.id).content % kChunkNodes == 0;
        ends_chunk |= is_boundary && chunk.size() >= kMinChunk;
      }
      if (ends_chunk) EndChunk(chunk);
    }
    if (!chunk.empty()) EndChunk(chunk);
    return Ok();
  }

  /// Of the node whose record was encoded.
  PoolWriter::Interned Version(uint64_t stable_id) {
    if (!pools_.shares_nodes) return {pools_.nodes.Append(record_), true};
    uint32_t& last = LastVersion(stable_id);
    const PoolWriter::Interned version = pools_.nodes.Intern(record_, last);
    last = version.id;
    return version;
  }

  /// The version that the node had in the snapshot before, for a guess.
  uint32_t& LastVersion(uint64_t stable_id) {
    // Ids are dense unless a text gave them; then there is nothing to gain.
    if (stable_id > 2 * pools_.node_facts.size() + kSparseIds) return unknown_version_ = 0;
    if (stable_id >= pools_.last_versions.size())
      pools_.last_versions.resize(stable_id + 1 + stable_id / 2);
    return pools_.last_versions[stable_id];
  }

  void EndChunk(std::vector<uint32_t>& chunk) {
    record_.clear();
    ByteWriter out(record_);
    uint32_t before = 0;
    for (uint32_t id : chunk) {
      out.Signed(int64_t{id} - before);
      before = id;
    }
    const PoolWriter::Interned interned =
        pools_.shares_nodes ? pools_.chunks.Intern(record_)
                            : PoolWriter::Interned{pools_.chunks.Append(record_), true};
    if (interned.is_new) pools_.chunk_nodes.push_back(chunk);
    snapshot_.chunks.push_back(interned.id);
    chunk.clear();
  }

  /// Of the node whose record was encoded; `head_size` is the size of its part before the results.
  SnapshotPools::NodeFacts FactsOf(const Graph& graph, NodeId id, size_t head_size) {
    const Node& node = graph.node(id);
    const auto first_element = static_cast<uint32_t>(pools_.element_facts.size());
    content_.assign(record_, 0, head_size);
    placements_.clear();
    ByteWriter types(content_), placed(placements_);
    bool is_placed = false;
    for (size_t i = 0; i < node.num_results; ++i) {
      const Value& value = graph.value(graph.result(id, i));
      const KnownType type = value.type.valid() ? types_[Index(value.type)] : KnownType();
      if (node.returns_tuple) {
        if (!value.name.valid()) continue;
        pools_.element_facts.push_back({static_cast<uint32_t>(i), type.unplaced, type.placements});
        continue;
      }
      types.Fixed64(type.unplaced);
      EncodeAlias(graph, id, value, types);
      placed.Fixed64(type.placements);
      is_placed |= type.placements != 0;
    }
    const auto elements = static_cast<uint32_t>(pools_.element_facts.size()) - first_element;
    return {static_cast<uint64_t>(node.stable_id), SumBytes(content_),
            is_placed ? SumBytes(placements_) : 0, first_element, 1 + elements};
  }

  /// Returns the size of the part before the results.
  size_t EncodeNode(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    ByteWriter out(record_);
    out.Varint(static_cast<uint64_t>(node.stable_id));
    out.Byte(static_cast<uint8_t>(static_cast<uint8_t>(node.kind) |
                                  (node.returns_tuple ? kReturnsTuple : 0)));
    out.Byte(static_cast<uint8_t>(node.phase));
    out.Varint(String(node.op));
    out.Varint(String(node.module));
    out.Varint(node.num_args);
    for (const Arg& arg : graph.args(id))
      EncodeArg(graph, id, arg, 0, out);
    out.Varint(node.num_kwargs);
    for (size_t i = 0; i < node.num_kwargs; ++i) {
      const NamedArg kwarg = graph.kwarg(id, i);
      out.Varint(String(kwarg.name));
      EncodeArg(graph, id, kwarg.value, 0, out);
    }
    const size_t head_size = record_.size();
    out.Varint(node.num_results);
    for (size_t i = 0; i < node.num_results; ++i) {
      const Value& value = graph.value(graph.result(id, i));
      out.Varint(Type(value.type));
      EncodeAlias(graph, id, value, out);
    }

    out.Varint(String(node.name));
    for (size_t i = 0; i < node.num_results; ++i)
      out.Varint(String(graph.value(graph.result(id, i)).name));
    out.Byte(node.loc.valid() ? 1 : 0);
    if (node.loc.valid()) {
      const SourceLoc& loc = module_.loc(node.loc);
      out.Varint(String(loc.file));
      out.Signed(loc.line);
      out.Varint(String(loc.function));
      out.Varint(String(loc.code));
    }
    out.Signed(node.seq_nr);
    out.Signed(node.text_line);
    out.Varint(node.stream);
    const auto attributes = graph.attributes(id);
    out.Varint(attributes.size());
    for (const auto& [key, value] : attributes) {
      out.Varint(String(key));
      out.Varint(String(value));
    }
    return head_size;
  }

  static void EncodeAlias(const Graph& graph, NodeId id, const Value& value, ByteWriter& out) {
    if (!value.alias_of.valid()) return out.Varint(0);
    out.Varint(graph.result_index(value.alias_of) + 1);
    out.Signed(Distance(graph, id, value.alias_of));
  }

  /// Operands are stored as differences of stable ids: small, and independent of positions.
  static int64_t Distance(const Graph& graph, NodeId from, ValueId to) {
    const Node& producer = graph.node(graph.value(to).def);
    return static_cast<int64_t>(static_cast<uint64_t>(graph.node(from).stable_id) -
                                static_cast<uint64_t>(producer.stable_id));
  }

  void EncodeArg(const Graph& graph, NodeId user, const Arg& arg, int depth, ByteWriter& out) {
    if (arg.is_value() && graph.result_index(arg.value()) == 0) {
      out.Byte(kFirstResult);
      out.Signed(Distance(graph, user, arg.value()));
      return;
    }
    out.Byte(static_cast<uint8_t>(arg.kind()));
    switch (arg.kind()) {
      case ArgKind::kNone:
        return;
      case ArgKind::kValue:
        out.Varint(graph.result_index(arg.value()));
        out.Signed(Distance(graph, user, arg.value()));
        return;
      case ArgKind::kInt:
        out.Signed(arg.as_int());
        return;
      case ArgKind::kFloat:
        out.Double(arg.as_float());
        return;
      case ArgKind::kBool:
        out.Byte(arg.as_bool() ? 1 : 0);
        return;
      case ArgKind::kDim:
        EncodeDim(arg.dim(), out);
        return;
      case ArgKind::kString:
      case ArgKind::kDevice:
      case ArgKind::kRaw:
        out.Varint(String(arg.str()));
        return;
      case ArgKind::kDType:
        out.Byte(static_cast<uint8_t>(arg.dtype()));
        return;
      case ArgKind::kGraph:
        out.Varint(static_cast<uint64_t>(body_index_[Index(arg.graph())]));
        return;
      case ArgKind::kList:
      case ArgKind::kTuple:
      case ArgKind::kDict:
      case ArgKind::kCall:
        if (depth == kMaxDepth) {
          too_deep_ = true;
          return;
        }
        out.Varint(arg.span_size());
        for (const Arg& element : graph.elements(arg))
          EncodeArg(graph, user, element, depth + 1, out);
        return;
    }
  }

  void EncodeDim(DimId dim, ByteWriter& out) {
    if (!dim.valid()) return out.Varint(kNoDim);
    uint64_t& code = dims_[Index(dim)];
    if (code == kNoDim) {
      const bool is_const = module_.dims().kind(dim) == DimKind::kConst;
      code = is_const ? kConstDim : kFirstTextDim + Intern(module_.dims().ToString(dim)) - 1;
    }
    out.Varint(code);
    if (code == kConstDim) out.Signed(module_.dims().value(dim));
  }

  uint32_t Type(TypeId id) {
    if (!id.valid()) return 0;
    KnownType& known = types_[Index(id)];
    if (known.record != 0) return known.record;
    const strata::Type& type = module_.types()[id];
    const std::string record = TypeRecord(type);
    known = {pools_.types.Intern(record).id, SumBytes(record), 0};
    if (!type.placements.empty()) {
      strata::Type unplaced = type;
      unplaced.placements.clear();
      unplaced.wrapper = {};  // that of placements
      known.placements = known.unplaced;
      known.unplaced = SumBytes(TypeRecord(unplaced));
    }
    return known.record;
  }

  std::string TypeRecord(const strata::Type& type) {
    std::string record;
    ByteWriter out(record);
    out.Byte(static_cast<uint8_t>(type.kind));
    out.Byte(static_cast<uint8_t>(type.dtype));
    out.Byte(static_cast<uint8_t>((type.has_strides ? kHasStrides : 0) |
                                  (type.requires_grad ? kRequiresGrad : 0)));
    out.Varint(String(type.device));
    out.Varint(String(type.wrapper));
    EncodeDim(type.dim, out);
    out.Varint(type.sizes.size());
    for (DimId size : type.sizes)
      EncodeDim(size, out);
    out.Varint(type.strides.size());
    for (DimId stride : type.strides)
      EncodeDim(stride, out);
    out.Varint(type.placements.size());
    for (const Placement& placement : type.placements) {
      const bool is_strided = placement.split != 0;
      out.Byte(is_strided ? kStridedShard : static_cast<uint8_t>(placement.kind));
      out.Signed(placement.dim);
      if (is_strided) out.Signed(placement.split);
      out.Varint(String(placement.reduce));
    }
    out.Varint(String(type.text));
    return record;
  }

  void EncodeSymbols(ByteWriter& root) {
    const auto symbols = module_.dims().symbols();
    root.Varint(symbols.size());
    for (const Symbol& symbol : symbols) {
      root.Varint(String(symbol.name));
      root.Byte(static_cast<uint8_t>((symbol.backed ? kBacked : 0) | (symbol.hint ? kHasHint : 0)));
      root.Signed(symbol.hint.value_or(0));
      root.Signed(symbol.min);
      root.Signed(symbol.max);
    }
  }

  uint32_t Intern(std::string_view text) { return pools_.strings.Intern(text).id; }
  uint32_t String(StrId id) {
    if (!id.valid()) return 0;
    uint32_t& known = strings_[Index(id)];
    if (known != 0) return known;
    uint32_t& guess = pools_.last_strings[Index(id)];
    return known = guess = pools_.strings.Intern(module_.str(id), guess).id;
  }
  template <class Tag>
  static size_t Index(Id<Tag> id) {
    return static_cast<size_t>(id.index);
  }

  struct KnownType {
    uint32_t record = 0;
    uint64_t unplaced = 0;    // hash of all but the placements
    uint64_t placements = 0;  // hash of the type with its placements; 0: it has none
  };

  const Module& module_;
  SnapshotPools& pools_;
  // Ids of records, by ids of the module; 0: not known yet.
  std::vector<uint32_t> strings_;
  std::vector<KnownType> types_;
  std::vector<uint64_t> dims_;
  std::vector<const Graph*> graphs_;
  std::vector<int32_t> body_index_;  // by GraphId: place in graphs_, -1: not part of the snapshot
  EncodedSnapshot snapshot_;
  std::string record_, content_, placements_;  // what is being encoded; kept for their memory
  uint32_t unknown_version_ = 0;
  bool too_deep_ = false;
};

}  // namespace

Result<EncodedSnapshot> EncodeSnapshot(const Graph& graph, SnapshotPools& pools) {
  return Encoder(graph.module(), pools).Encode(graph);
}

}  // namespace strata
