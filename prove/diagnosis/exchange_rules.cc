#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/placement/placement.h"
#include "prove/diagnosis/rules.h"

namespace strata::prove {
namespace {

bool AddsToSum(const Difference& d, NodeId add) {
  int sums = 0, others = 0;
  for (const ValueId operand : d.after.operands(add)) {
    const NodeId def = d.after.value(operand).def;
    const bool is_sum =
        IsWait(d.after, def) && IsCollective(d.after, d.after.value(d.after.operands(def)[0]).def,
                                             CollectiveKind::kAllReduce);
    ++(is_sum ? sums : others);
  }
  return sums == 1 && others == 1;
}

/// The launch that a node of both graphs waits for.
NodeId LaunchOf(const Graph& graph, StableId id) {
  const NodeId node = NodeWithId(graph, id);
  if (!node.valid() || !IsWait(graph, node)) return {};
  const NodeId launch = graph.value(graph.operands(node)[0]).def;
  return CollectiveOf(graph, launch) ? launch : NodeId{};
}

/// Calls `visit` for collectives that both graphs have, from the roots of a cone on back through
/// what they read. `visit` says whether to go on behind one.
template <class Visit>
void WalkBack(const Difference& d, const Graph& graph, const std::set<StableId>& others,
              const Cone& cone, Visit&& visit) {
  constexpr int kMaxDepth = 4;
  std::vector<StableId> roots = cone.roots;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    std::vector<StableId> next;
    for (const StableId id : roots) {
      const NodeId launch = LaunchOf(graph, id);
      if (!launch.valid()) continue;
      const Cone more = ConeOf(graph, others, d.mesh, launch, false);
      if (visit(id, launch, more)) next.insert(next.end(), more.roots.begin(), more.roots.end());
    }
    roots = std::move(next);
  }
}

/// Of collectives that both graphs have, and that one of them does not read here any more, too.
std::vector<Exchange> ExchangesOf(const Difference& d, const Graph& graph,
                                  const std::set<StableId>& others, const Cone& cone,
                                  const std::set<StableId>& of_other) {
  std::vector<Exchange> exchanges = cone.exchanges;
  WalkBack(d, graph, others, cone, [&](StableId id, NodeId launch, const Cone& more) {
    if (of_other.contains(id)) return false;
    exchanges.push_back(ExchangeOf(graph, launch));
    exchanges.insert(exchanges.end(), more.exchanges.begin(), more.exchanges.end());
    return true;
  });
  std::ranges::sort(exchanges);
  return exchanges;
}

/// What a cone reads, directly or through other collectives.
std::set<StableId> ReadBehind(const Difference& d, const Graph& graph,
                              const std::set<StableId>& others, const Cone& cone) {
  std::set<StableId> ids(cone.roots.begin(), cone.roots.end());
  WalkBack(d, graph, others, cone, [&](StableId id, NodeId, const Cone& more) {
    ids.insert(id);
    ids.insert(more.roots.begin(), more.roots.end());
    return true;
  });
  return ids;
}

/// Whether the graph before the pass has collectives, too.
bool IsLoweredBefore(const Difference& d) {
  return IsLowered(d.before);
}

}  // namespace

/// A sum or function of a rank's summand, before the sum over the ranks, or a summand of a rank
/// that is added after it.
std::optional<Diagnosis> Early(const Difference& d) {
  // What a pass makes of an operator adds and sums on its own, but never sums these functions.
  const bool is_made = d.was.is_lowered_operator || d.was.computes;
  constexpr std::array<std::string_view, 6> kNeverSummed = {"sqrt", "rsqrt",   "reciprocal",
                                                            "log",  "sigmoid", "silu"};
  for (const NodeId node : d.is.inner) {
    if (!is_made && BaseName(d.after.op(node)) == "add" && AddsToSum(d, node))
      return Diagnosis{
          BugKind::kPartialOperand,
          fmt::format("{} adds a rank's summand to a sum over the ranks", d.after.name(node))};
    if (!IsCollective(d.after, node, CollectiveKind::kAllReduce) &&
        !IsCollective(d.after, node, CollectiveKind::kReduceScatter))
      continue;
    const NodeId summand = d.after.value(d.after.operands(node)[0]).def;
    const bool is_new = !d.before_ids.contains(d.after.node(summand).stable_id);
    const std::string_view base = BaseName(d.after.op(summand));
    if (!is_new || !ComputesNumbers(d.after, summand) || base.ends_with("_like")) continue;
    if (IsScaling(d, summand)) continue;
    if (is_made && std::ranges::find(kNeverSummed, base) == kNeverSummed.end()) continue;
    return Diagnosis{BugKind::kPartialOperand,
                     fmt::format("{} {} on every rank before {}", d.after.name(summand),
                                 base == "add" ? "adds" : "computes", d.after.name(node))};
  }
  return std::nullopt;
}

std::optional<Diagnosis> Exchanges(const Difference& d) {
  if (d.was.is_lowered_operator && !IsLoweredBefore(d)) return std::nullopt;
  const std::vector<Exchange> from = ExchangesOf(d, d.before, d.after_ids, d.was,
                                                 ReadBehind(d, d.after, d.before_ids, d.is)),
                              to = ExchangesOf(d, d.after, d.before_ids, d.is,
                                               ReadBehind(d, d.before, d.after_ids, d.was));
  const auto missing = Without(from, to);
  const auto extra = Without(to, from);
  const size_t was = from.size(), is = to.size();
  if (missing.empty() && extra.empty()) return std::nullopt;
  // Buckets and shared gathers have fewer collectives: what is missing must be missing at all.
  if (extra.empty() && IsLoweredBefore(d)) {
    for (const Exchange& exchange : missing)
      if (std::ranges::find(to, exchange) == to.end())
        return Diagnosis{BugKind::kMissingCollective, "no " + exchange.Text()};
    return std::nullopt;
  }
  if (!missing.empty() && !extra.empty()) {
    for (const Exchange& m : missing) {
      for (const Exchange& e : extra) {
        if (m.kind == e.kind && m.group == e.group)
          return Diagnosis{BugKind::kWrongReduction,
                           fmt::format("{} instead of {}", e.Text(), m.Text())};
        if (m.kind != e.kind && m.group == e.group)
          return Diagnosis{BugKind::kWrongOperation,
                           fmt::format("{} instead of {}", e.Text(), m.Text())};
        if (m.kind == e.kind && m.reduce == e.reduce)
          return Diagnosis{BugKind::kWrongGroup,
                           fmt::format("{} instead of {}", e.Text(), m.Text())};
      }
    }
  }
  if (is < was || extra.empty())
    return Diagnosis{BugKind::kMissingCollective, "no " + missing.front().Text()};
  // One collective may become several; but of a kind and group that were not there is one more.
  const bool is_new = std::ranges::any_of(extra, [&](const Exchange& exchange) {
    return std::ranges::find(from, exchange) == from.end();
  });
  if (!extra.empty() && is > was && (is_new || !IsLoweredBefore(d)))
    return Diagnosis{BugKind::kExtraCollective, extra.front().Text() + " was not expected"};
  return std::nullopt;
}

/// Of the same values: collectives over each other's ranks.
std::optional<Diagnosis> OtherOrder(const Difference& d) {
  if (d.was.is_lowered_operator && !IsLoweredBefore(d)) return std::nullopt;
  if (d.was.roots != d.is.roots || d.was.exchanges != d.is.exchanges) return std::nullopt;
  if (d.was.in_order == d.is.in_order) return std::nullopt;
  const auto [was, is] = std::ranges::mismatch(d.was.in_order, d.is.in_order);
  return Diagnosis{BugKind::kWrongGroup,
                   fmt::format("{} in the place of {}", is->Text(), was->Text())};
}

std::optional<Diagnosis> Parts(const Difference& d) {
  const auto missing = Without(d.was.shards, d.is.shards),
             extra = Without(d.is.shards, d.was.shards);
  if (missing.empty() || extra.empty() || d.was.is_lowered_operator) return std::nullopt;
  const auto axis = [](const std::string& text) { return text.substr(text.find(' ') + 1); };
  if (axis(missing[0]) == axis(extra[0]))
    return Diagnosis{BugKind::kWrongDim,
                     fmt::format("a part of dimension {} instead of {}", extra[0], missing[0])};
  return Diagnosis{BugKind::kWrongGroup,
                   fmt::format("a part by {} instead of {}", axis(extra[0]), axis(missing[0]))};
}

/// A slice by literals, which is the same on all ranks, where each takes its own part.
std::optional<Diagnosis> SameSlice(const Difference& d) {
  const auto missing = Without(d.was.shards, d.is.shards);
  if (missing.empty()) return std::nullopt;
  for (const NodeId node : d.is.inner) {
    if (BaseName(d.after.op(node)) != "slice") continue;
    return Diagnosis{BugKind::kWrongPart,
                     fmt::format("{} is the same on all ranks, no part of dimension {}",
                                 d.after.name(node), missing[0])};
  }
  return std::nullopt;
}

}  // namespace strata::prove
