#include "prove/layers/unchanged_calls.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/fingerprint.h"
#include "passes/core/chunk_attributes.h"
#include "passes/placement/placement.h"
#include "prove/evaluation/evaluator.h"
#include "prove/layers/layers.h"
#include "prove/layers/node_comparison.h"

namespace strata::prove {
namespace {

/// Compares nodes of two modules.
class CallComparison {
 public:
  explicit CallComparison(const LayeredPair& pair)
      : pair_(pair), a_(pair.graph(kBefore)), b_(pair.graph(kAfter)) {}

  bool IsSame(NodeId from, NodeId to) {
    const Node &x = a_.node(from), &y = b_.node(to);
    const bool is_call = x.kind == NodeKind::kCall && !DrawsNumbers(a_.op(from));
    const bool is_input = x.kind == NodeKind::kPlaceholder || x.kind == NodeKind::kGetAttr;
    if (x.kind != y.kind || !(is_call || is_input) || a_.op(from) != b_.op(to) ||
        x.num_args != y.num_args || x.num_kwargs != y.num_kwargs ||
        x.num_results != y.num_results || x.returns_tuple != y.returns_tuple ||
        a_.attribute(from, kChunkRoleAttribute) != b_.attribute(to, kChunkRoleAttribute))
      return false;
    for (size_t i = 0; i < x.num_results; ++i) {
      const ValueId p = a_.result(from, i), q = b_.result(to, i);
      if (IsWritten(p, q) || !IsSameType(a_.value(p).type, b_.value(q).type)) return false;
    }
    for (size_t i = 0; i < x.num_args; ++i)
      if (!IsSameArg(a_.args(from)[i], b_.args(to)[i])) return false;
    for (size_t i = 0; i < x.num_kwargs; ++i) {
      const NamedArg p = a_.kwarg(from, i), q = b_.kwarg(to, i);
      const bool have_same_name = a_.module().str(p.name) == b_.module().str(q.name);
      if (!have_same_name || !IsSameArg(p.value, q.value)) return false;
    }
    return true;
  }

  /// Whether two values are the same result of nodes with equal StableIds, or equal to such.
  bool IsTwin(ValueId x, ValueId y) const {
    return IsSameResult(x, y) ||
           IsSameResult(pair_.FirstAlike(kBefore, x), pair_.FirstAlike(kAfter, y));
  }

 private:
  bool IsSameResult(ValueId x, ValueId y) const {
    return a_.result_index(x) == b_.result_index(y) &&
           pair_.PartnerOf(kBefore, a_.value(x).def) == b_.value(y).def;
  }

  bool IsWritten(ValueId x, ValueId y) const {
    return pair_.IsWritten(kBefore, x) || pair_.IsWritten(kAfter, y);
  }

  bool IsSameArg(const Arg& x, const Arg& y) {
    if (x.kind() != y.kind()) return false;
    if (const std::optional<bool> equal = AreEqualNumbers(x, y)) return *equal;
    switch (x.kind()) {
      case ArgKind::kValue:
        return IsTwin(x.value(), y.value()) && !IsWritten(x.value(), y.value());
      case ArgKind::kDim:
        return IsSameDim(x.dim(), y.dim());
      case ArgKind::kString:
      case ArgKind::kDevice:
      case ArgKind::kRaw:
        return a_.module().str(x.str()) == b_.module().str(y.str());
      case ArgKind::kGraph:
        return FingerprintOf(a_.module().graph(x.graph())) ==
               FingerprintOf(b_.module().graph(y.graph()));
      default:
        break;
    }
    return std::ranges::equal(a_.elements(x), b_.elements(y),
                              [&](const Arg& p, const Arg& q) { return IsSameArg(p, q); });
  }

  /// Of each pair of ids once: there are few.
  template <class Compare>
  bool Memo(std::unordered_map<uint64_t, bool>& memo, int32_t x, int32_t y, Compare&& compare) {
    if (x < 0 || y < 0) return x == y;
    const uint64_t key = uint64_t{static_cast<uint32_t>(x)} << 32U | static_cast<uint32_t>(y);
    const auto [found, is_new] = memo.try_emplace(key, false);
    if (is_new) found->second = compare();
    return found->second;
  }

  bool IsSameDim(DimId x, DimId y) {
    return Memo(dims_, x.index, y.index, [&] {
      std::string p, q;
      a_.module().dims().PrintCanonical(x, p);
      b_.module().dims().PrintCanonical(y, q);
      return p == q;
    });
  }

  /// But for placements, which evaluation of one graph does not read.
  bool IsSameType(TypeId x, TypeId y) {
    return Memo(types_, x.index, y.index, [&] {
      const Module &of_a = a_.module(), &of_b = b_.module();
      const Type &p = of_a.types()[x], &q = of_b.types()[y];
      const auto is_same = [&](DimId d, DimId e) { return IsSameDim(d, e); };
      return p.kind == q.kind && p.dtype == q.dtype && p.has_strides == q.has_strides &&
             std::ranges::equal(p.sizes, q.sizes, is_same) &&
             std::ranges::equal(p.strides, q.strides, is_same) && IsSameDim(p.dim, q.dim) &&
             p.text.valid() == q.text.valid() &&
             (!p.text.valid() || of_a.str(p.text) == of_b.str(q.text));
    });
  }

  const LayeredPair& pair_;
  const Graph &a_, &b_;
  std::unordered_map<uint64_t, bool> dims_, types_;
};

bool HaveSameInputs(const LayeredPair& pair) {
  const std::vector<NodeId> from = pair.graph(kBefore).placeholders(),
                            to = pair.graph(kAfter).placeholders();
  return std::ranges::equal(from, to,
                            [&](NodeId x, NodeId y) { return pair.PartnerOf(kBefore, x) == y; });
}

/// Whether only one graph has the node, and it computes what an earlier one did.
bool ComputesAgain(const LayeredPair& pair, Side side, NodeId node) {
  const Graph& graph = pair.graph(side);
  if (pair.PartnerOf(side, node).valid() || graph.node(node).num_results == 0) return false;
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    const ValueId value = graph.result(node, i);
    if (pair.FirstAlike(side, value) == value || pair.IsWritten(side, value)) return false;
  }
  return true;
}

/// A graph of ranks is known by the whole type of an input: one stays.
void KeepRanks(const Graph& after, const LayeredPair& pair,
               std::array<std::vector<bool>, 2>& is_same) {
  for (const NodeId node : after.placeholders()) {
    if (after.attribute(node, kGlobalTypeAttribute).empty()) continue;
    is_same[kBefore][static_cast<size_t>(pair.PartnerOf(kAfter, node).index)] = false;
    is_same[kAfter][static_cast<size_t>(node.index)] = false;
    return;
  }
}

}  // namespace

std::optional<ChangedCalls> WithoutUnchangedCalls(const Graph& before, const Graph& after) {
  if (!PairCut::CanCut(before, after)) return std::nullopt;
  const LayeredPair pair(before, after);
  if (!HaveSameInputs(pair)) return std::nullopt;
  CallComparison calls(pair);
  std::array<std::vector<bool>, 2> is_same = {
      std::vector<bool>(static_cast<size_t>(before.node_bound())),
      std::vector<bool>(static_cast<size_t>(after.node_bound()))};
  ChangedCalls changed;
  for (const NodeId node : after.nodes()) {
    const NodeId partner = pair.PartnerOf(kAfter, node);
    if (!partner.valid() || !calls.IsSame(partner, node)) continue;
    is_same[kBefore][static_cast<size_t>(partner.index)] = true;
    is_same[kAfter][static_cast<size_t>(node.index)] = true;
  }
  for (const Side side : kSides)
    for (const NodeId node : pair.graph(side).nodes())
      if (ComputesAgain(pair, side, node)) is_same[side][static_cast<size_t>(node.index)] = true;
  KeepRanks(after, pair, is_same);
  const std::vector<ValueId> from = before.operands(before.output()),
                             to = after.operands(after.output());
  PairCut cut(pair,
              {.node = [&](Side side,
                           NodeId node) { return is_same[side][static_cast<size_t>(node.index)]; },
               .output =
                   [&](size_t i) {
                     return calls.IsTwin(from[i], to[i]) &&
                            is_same[kBefore][static_cast<size_t>(before.value(from[i]).def.index)];
                   }});
  if (cut.Mark()) return std::nullopt;
  changed.left_out = cut.CallsLeftOut(kAfter);
  if (changed.left_out == 0) return std::nullopt;
  changed.pair = cut.Build();
  return changed;
}

}  // namespace strata::prove
