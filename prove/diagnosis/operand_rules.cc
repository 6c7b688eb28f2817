#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "prove/diagnosis/rules.h"

namespace strata::prove {
namespace {

std::string NameIn(const Graph& graph, StableId id) {
  const NodeId node = NodeWithId(graph, id);
  return node.valid() ? std::string(graph.name(node)) : std::string("?");
}

/// A new node that does what a lost one did before the sum over ranks that differs: now it reads
/// the sum. None: there is none.
NodeId MovedBehind(const Difference& d, NodeId lost) {
  const auto launch_of = [&](NodeId node) {
    return IsWait(d.after, node) ? d.after.value(d.after.operands(node)[0]).def : node;
  };
  const NodeId sum = launch_of(d.node);
  if (!IsCollective(d.after, sum, CollectiveKind::kAllReduce) &&
      !IsCollective(d.after, sum, CollectiveKind::kReduceScatter))
    return {};
  for (const NodeId node : d.after.nodes()) {
    const bool is_new = !d.before_ids.contains(d.after.node(node).stable_id);
    if (!is_new || d.after.op(node) != d.before.op(lost)) continue;
    for (const ValueId operand : d.after.operands(node))
      if (launch_of(d.after.value(operand).def) == sum) return node;
  }
  return {};
}

Diagnosis LeftOut(const Difference& d, NodeId lost) {
  if (const NodeId moved = MovedBehind(d, lost); moved.valid()) {
    return {BugKind::kPartialOperand,
            fmt::format("{} ({}) reads the sum over the ranks, and {} read summands",
                        d.after.name(moved), d.after.op(moved), d.before.name(lost))};
  }
  if (IsWait(d.before, lost) || CollectiveOf(d.before, lost))
    return {BugKind::kMissingCollective, fmt::format("{} is left out", d.before.name(lost))};
  return {BugKind::kMissingOperation,
          fmt::format("{} ({}) is left out", d.before.name(lost), d.before.op(lost))};
}

/// Whether an operand of `node`, maybe a redistribution, comes from one of `ids`.
bool Reads(const Difference& d, NodeId node, const std::vector<StableId>& ids) {
  if (!node.valid()) return false;
  if (IsWait(d.before, node)) node = d.before.value(d.before.operands(node)[0]).def;
  const Cone cone = ConeOf(d.before, d.after_ids, d.mesh, node, false);
  return std::ranges::any_of(cone.roots,
                             [&](StableId id) { return std::ranges::find(ids, id) != ids.end(); });
}

/// The node that makes a rank's place on an axis and that a node reads; none: it reads none.
NodeId IndexReadBy(const Difference& d, NodeId node) {
  for (const ValueId operand : d.after.operands(node)) {
    const NodeId def = d.after.value(operand).def;
    if (d.after.op(def) == "strata.axis_index.default") return def;
  }
  return {};
}

}  // namespace

bool IsScaling(const Difference& d, NodeId node) {
  const std::string_view base = BaseName(d.after.op(node));
  return base == "mul" || base == "div";
}

/// An operator that computes something is not there any more, and nothing else is.
std::optional<Diagnosis> LostOperation(const Difference& d) {
  if (d.was.is_lowered_operator || d.was.computes) return std::nullopt;
  const std::vector<std::string> extra = Without(d.is.computed, d.was.computed);
  const std::vector<std::string> missing = Without(d.was.computed, d.is.computed);
  if (!extra.empty() || missing.empty()) return std::nullopt;
  for (const NodeId node : d.was.inner) {
    if (BaseName(d.before.op(node)) != missing[0] || !ComputesNumbers(d.before, node)) continue;
    return Diagnosis{BugKind::kMissingOperation,
                     fmt::format("{} ({}) is left out", d.before.name(node), d.before.op(node))};
  }
  return std::nullopt;
}

/// As Roots, where what is not read any more computes something.
std::optional<Diagnosis> LostRoots(const Difference& d) {
  const std::optional<Diagnosis> found = Roots(d);
  const bool is_of_collective = found && found->kind == BugKind::kMissingCollective;
  return is_of_collective || d.was.is_lowered_operator ? std::nullopt : found;
}

/// A new node that computes something: a factor, what depends on the rank, another operator.
std::optional<Diagnosis> NewOperation(const Difference& d) {
  if (d.was.is_lowered_operator) return std::nullopt;
  const std::vector<std::string> extra = Without(d.is.computed, d.was.computed);
  const std::vector<std::string> missing = Without(d.was.computed, d.is.computed);
  if (extra.size() == 1 && missing.size() == 1)
    return Diagnosis{BugKind::kWrongOperation,
                     fmt::format("{} instead of {}", extra[0], missing[0])};
  const auto is_extra = [&](std::string_view base) {
    return std::ranges::find(extra, base) != extra.end();
  };
  std::optional<Diagnosis> found;
  for (const NodeId node : d.is.inner) {
    const std::string_view base = BaseName(d.after.op(node));
    if (!is_extra(base) || !ComputesNumbers(d.after, node)) continue;
    if (is_extra("axis_index"))
      return Diagnosis{BugKind::kSomeRanks,
                       fmt::format("{} depends on the rank", d.after.name(node))};
    if (const NodeId index = IndexReadBy(d, node); index.valid())
      return Diagnosis{
          BugKind::kWrongPart,
          fmt::format("{} changes the rank's place on {}, {}", d.after.name(node),
                      d.after.module().str(d.after.args(index)[0].str()), d.after.name(index))};
    const auto args = d.after.args(node);
    const bool is_factor = IsScaling(d, node) && args.size() > 1 && IsNumber(args[1]);
    if (found && !is_factor) continue;  // others may be a part of what a pass makes of an operator
    found = Diagnosis{is_factor ? BugKind::kFactor : BugKind::kExtraOperation,
                      fmt::format("{} ({}) was not there", d.after.name(node), d.after.op(node))};
    if (is_factor) break;
  }
  return found;
}

/// Another value is read, or that which an operation that is left out reads.
std::optional<Diagnosis> Roots(const Difference& d) {
  std::vector<StableId> was = d.was.roots, is = d.is.roots;
  for (auto* roots : {&was, &is}) {
    std::ranges::sort(*roots);
    roots->erase(std::ranges::unique(*roots).begin(), roots->end());
  }
  const std::vector<StableId> missing = Without(was, is), extra = Without(is, was);
  if (missing.empty()) return std::nullopt;
  const NodeId lost = NodeWithId(d.before, missing[0]);
  const bool is_collective = IsWait(d.before, lost) || CollectiveOf(d.before, lost);
  if (extra.empty() && is_collective && Reads(d, lost, is)) return LeftOut(d, lost);
  if (extra.empty()) {
    // What the lost one reads is among the rest: it is left out.
    if (Reads(d, lost, is)) return LeftOut(d, lost);
    if (std::optional<Diagnosis> found = LostOperation(d)) return found;
    return Diagnosis{BugKind::kExchanged, fmt::format("{} is not read", d.before.name(lost))};
  }
  if (Reads(d, lost, extra)) return LeftOut(d, lost);
  return Diagnosis{
      BugKind::kExchanged,
      fmt::format("reads {} where {} was read", NameIn(d.after, extra[0]), d.before.name(lost))};
}

/// Another result of the same node, or another operand in the same place.
std::optional<Diagnosis> OtherResult(const Difference& d) {
  for (const auto& [id, index] : d.was.results) {
    if (d.is.results.contains({id, index})) continue;
    const auto other = std::ranges::find(d.is.results, id, &std::pair<StableId, size_t>::first);
    if (other == d.is.results.end()) continue;
    return Diagnosis{BugKind::kExchanged, fmt::format("reads result {} of {} instead of result {}",
                                                      other->second, NameIn(d.after, id), index)};
  }
  if (!d.is_same) return std::nullopt;
  const auto a = d.before.operands(d.expected), b = d.after.operands(d.node);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (RootsOfOperand(d, d.before, a[i], d.after_ids) ==
        RootsOfOperand(d, d.after, b[i], d.before_ids))
      continue;
    return Diagnosis{BugKind::kExchanged,
                     fmt::format("operand {} of {} is another value", i, d.after.name(d.node))};
  }
  return std::nullopt;
}

/// The same values in other places of what reads them all.
std::optional<Diagnosis> OtherPlaces(const Difference& d) {
  if (d.was.roots == d.is.roots || d.was.roots.size() != d.is.roots.size()) return std::nullopt;
  std::vector<StableId> was = d.was.roots, is = d.is.roots;
  const auto [first, other] = std::ranges::mismatch(was, is);
  Diagnosis found{
      BugKind::kExchanged,
      fmt::format("reads {} where {} was read", NameIn(d.after, *other), NameIn(d.before, *first))};
  std::ranges::sort(was);
  std::ranges::sort(is);
  return was == is ? std::optional(std::move(found)) : std::nullopt;
}

/// The same operators, one after the other in another way: an epsilon outside of a root.
std::optional<Diagnosis> OtherSequence(const Difference& d) {
  if (d.was.is_lowered_operator || d.was.computed != d.is.computed) return std::nullopt;
  if (d.was.computed_in_order == d.is.computed_in_order) return std::nullopt;
  const auto [was, is] = std::ranges::mismatch(d.was.computed_in_order, d.is.computed_in_order);
  return Diagnosis{BugKind::kWrongOperation, fmt::format("{} in the place of {}", *is, *was)};
}

/// A new node that only moves elements, and leaves some out. Collectives of parts that are not even
/// have such nodes.
std::optional<Diagnosis> NewMove(const Difference& d) {
  if (!d.was.exchanges.empty()) return std::nullopt;
  constexpr std::array<std::string_view, 6> kMoves = {
      "constant_pad_nd", "slice", "select", "roll", "flip", "index_select"};
  for (const NodeId node : d.is.inner) {
    const std::string_view base = BaseName(d.after.op(node));
    const std::vector<NodeId> readers = UsersOf(d.after, node);
    const auto joins = [&](NodeId reader) { return BaseName(d.after.op(reader)) == "cat"; };
    const auto is_alike = [&](NodeId other) { return BaseName(d.before.op(other)) == base; };
    if (std::ranges::find(kMoves, base) == kMoves.end()) continue;
    if (std::ranges::any_of(d.was.inner, is_alike) || std::ranges::any_of(readers, joins)) continue;
    return Diagnosis{BugKind::kExtraOperation,
                     fmt::format("{} ({}) was not there", d.after.name(node), d.after.op(node))};
  }
  return std::nullopt;
}

/// The same values through the same collectives: pieces in another order.
std::optional<Diagnosis> Order(const Difference& d) {
  for (const NodeId node : d.is.inner) {
    const std::string_view base = BaseName(d.after.op(node));
    if (base == "transpose" && !d.was.is_lowered_operator)
      return Diagnosis{BugKind::kPermuted, fmt::format("{} was not there", d.after.name(node))};
    if (base == "cat" || base.starts_with("split"))
      return Diagnosis{BugKind::kExchanged,
                       fmt::format("pieces of {} are in another order", d.after.name(node))};
  }
  return std::nullopt;
}

}  // namespace strata::prove
