#include "ir/fingerprint.h"

#include <array>
#include <bit>
#include <memory>
#include <vector>
#include <xxhash.h>

#include <fmt/format.h>

#include "ir/module.h"

namespace strata {
namespace {

/// Hashes words as they come.
class WordHash {
 public:
  WordHash() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }

  void Add(uint64_t word) {
    if (size_ == words_.size()) Flush();
    words_[size_++] = word;
  }
  Fingerprint End() {
    Flush();
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return {hash.high64, hash.low64};
  }

 private:
  void Flush() {
    XXH3_128bits_update(state_.get(), words_.data(), size_ * sizeof(uint64_t));
    size_ = 0;
  }

  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
  std::array<uint64_t, 512> words_;
  size_t size_ = 0;
};

/// Writes a graph as words in which nothing depends on ids: strings by content, operands by the
/// position of their node, types and sizes by their text.
///
/// Two levels keep it linear and fast: strings, types and sizes are hashed once per module table
/// entry (memoised by id), the node list is a run of fixed-size words over these hashes.
class Encoder {
 public:
  Encoder(const Module& module, FingerprintScope scope)
      : module_(module), everything_(scope == FingerprintScope::kEverything) {}

  Fingerprint Encode(const Graph& graph) {
    const std::vector<int32_t> order = OrderOf(graph);
    WordHash hash;
    if (everything_) {
      hash.Add(OfString(graph.name()));
      hash.Add(graph.is_foreign() ? 1 : 0);
    }
    for (NodeId id : graph.nodes())
      EncodeNode(graph, id, order, hash);
    return hash.End();
  }

 private:
  // Each word says what it is, so that no two graphs share an encoding.
  static uint64_t Tag(uint64_t kind, uint64_t count) { return kind << 48 | count; }

  void EncodeNode(const Graph& graph, NodeId id, const std::vector<int32_t>& order, WordHash& out) {
    const Node& node = graph.node(id);
    out.Add(Tag(static_cast<uint64_t>(node.kind) + 1,
                node.num_args | static_cast<uint64_t>(node.num_kwargs) << 32));
    out.Add(OfString(node.op));
    for (const Arg& arg : graph.args(id))
      EncodeArg(graph, arg, order, out);
    for (size_t i = 0; i < node.num_kwargs; ++i) {
      const NamedArg kwarg = graph.kwarg(id, i);
      out.Add(OfString(kwarg.name));
      EncodeArg(graph, kwarg.value, order, out);
    }
    for (size_t i = 0; i < node.num_results; ++i) {
      const Value& value = graph.value(graph.result(id, i));
      // A text contains only the elements that are read by position.
      if (node.returns_tuple && !value.name.valid()) continue;
      out.Add(Tag(0x100 + (node.returns_tuple ? 1 : 0), i));
      out.Add(OfType(value.type));
      if (everything_) {
        out.Add(OfString(value.name));
        out.Add(value.alias_of.valid() ? OfValue(graph, value.alias_of, order) : ~0ull);
      }
    }
    if (everything_) EncodeMetadata(graph, id, out);
  }

  void EncodeMetadata(const Graph& graph, NodeId id, WordHash& out) {
    const Node& node = graph.node(id);
    out.Add(OfString(node.name));
    out.Add(OfString(node.module));
    out.Add(static_cast<uint64_t>(node.phase) << 48 | static_cast<uint64_t>(node.stream) << 32 |
            static_cast<uint32_t>(node.seq_nr));
    if (node.loc.valid()) {
      const SourceLoc& loc = module_.loc(node.loc);
      out.Add(OfString(loc.file) ^ static_cast<uint64_t>(loc.line));
      out.Add(OfString(loc.function));
      out.Add(OfString(loc.code));
    }
    for (const auto& [key, value] : graph.attributes(id)) {
      out.Add(Tag(0x200, 0));
      out.Add(OfString(key));
      out.Add(OfString(value));
    }
  }

  static uint64_t OfValue(const Graph& graph, ValueId id, const std::vector<int32_t>& order) {
    const Value& value = graph.value(id);
    return static_cast<uint64_t>(static_cast<uint32_t>(order[static_cast<size_t>(value.def.index)]))
               << 16 |
           graph.result_index(id);
  }

  void EncodeArg(const Graph& graph, const Arg& arg, const std::vector<int32_t>& order,
                 WordHash& out) {
    const auto kind = static_cast<uint64_t>(arg.kind()) + 0x1000;
    switch (arg.kind()) {
      case ArgKind::kNone:
        out.Add(Tag(kind, 0));
        return;
      case ArgKind::kValue:
        out.Add(Tag(kind, 0));
        out.Add(OfValue(graph, arg.value(), order));
        return;
      case ArgKind::kInt:
        out.Add(Tag(kind, 0));
        out.Add(static_cast<uint64_t>(arg.as_int()));
        return;
      case ArgKind::kFloat:
        out.Add(Tag(kind, 0));
        out.Add(std::bit_cast<uint64_t>(arg.as_float()));
        return;
      case ArgKind::kBool:
        out.Add(Tag(kind, arg.as_bool() ? 1 : 0));
        return;
      case ArgKind::kDim:
        out.Add(Tag(kind, 0));
        out.Add(OfDim(arg.dim()));
        return;
      case ArgKind::kString:
      case ArgKind::kDevice:
      case ArgKind::kRaw:
        out.Add(Tag(kind, 0));
        out.Add(OfString(arg.str()));
        return;
      case ArgKind::kDType:
        out.Add(Tag(kind, static_cast<uint64_t>(arg.dtype())));
        return;
      case ArgKind::kGraph: {
        const Fingerprint body = OfGraph(arg.graph());
        out.Add(Tag(kind, 0));
        out.Add(body.hi);
        out.Add(body.lo);
        return;
      }
      case ArgKind::kList:
      case ArgKind::kTuple:
      case ArgKind::kDict:
      case ArgKind::kCall:
        out.Add(Tag(kind, arg.span_size()));
        for (const Arg& element : graph.elements(arg))
          EncodeArg(graph, element, order, out);
        return;
    }
  }

  Fingerprint OfGraph(GraphId id) {
    const auto index = static_cast<size_t>(id.index);
    if (bodies_.size() <= index) bodies_.resize(index + 1);
    if (!bodies_[index]) bodies_[index] = Encode(module_.graph(id));
    return *bodies_[index];
  }

  /// The hash kept for `id`, made from `text` the first time.
  template <class TextFn>
  static uint64_t Memo(std::vector<uint64_t>& memo, int32_t id, TextFn&& text) {
    if (id < 0) return 0;
    const auto index = static_cast<size_t>(id);
    if (memo.size() <= index) memo.resize(index + index / 2 + 16, 0);
    if (memo[index] == 0) {
      const auto& content = text();
      memo[index] = XXH3_64bits(content.data(), content.size()) | 1;
    }
    return memo[index];
  }
  uint64_t OfString(StrId id) {
    return Memo(strings_, id.index, [&] { return module_.str(id); });
  }
  std::string CanonicalText(DimId id) const {
    std::string text;
    module_.dims().PrintCanonical(id, text);
    return text;
  }
  uint64_t OfDim(DimId id) {
    return Memo(dims_, id.index, [&] { return CanonicalText(id); });
  }
  uint64_t OfType(TypeId id) {
    return Memo(types_, id.index, [&] {
      std::string text;
      module_.types().PrintCanonical(id, text);
      // FX text contains neither of these two.
      if (everything_) {
        const Type& type = module_.types()[id];
        text += type.requires_grad ? "+grad" : "";
        if (type.kind == TypeKind::kTensor && type.dim.valid()) {
          text += '@';
          text += CanonicalText(type.dim);
        }
      }
      return text;
    });
  }

  const Module& module_;
  bool everything_;
  std::vector<uint64_t> strings_, dims_, types_;
  std::vector<std::optional<Fingerprint>> bodies_;
};

}  // namespace

Fingerprint FingerprintOf(const Graph& graph, FingerprintScope scope) {
  return Encoder(graph.module(), scope).Encode(graph);
}

std::string ToString(Fingerprint fingerprint) {
  return fmt::format("{:016x}{:016x}", fingerprint.hi, fingerprint.lo);
}

std::optional<Fingerprint> FingerprintFromString(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  uint64_t halves[2] = {0, 0};
  for (size_t i = 0; i < 32; ++i) {
    const char c = text[i];
    uint64_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint64_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
    halves[i / 16] = halves[i / 16] << 4 | digit;
  }
  return Fingerprint{halves[0], halves[1]};
}

}  // namespace strata
