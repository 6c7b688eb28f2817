#include <algorithm>

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

/// Of collectives that both graphs have, and that one of them does not read here any more, too.
std::vector<Exchange> ExchangesOf(const Difference& d, const Graph& graph,
                                  const std::set<StableId>& others, const Cone& cone,
                                  const Cone& other) {
  constexpr int kMaxDepth = 4;
  std::vector<Exchange> exchanges = cone.exchanges;
  std::vector<StableId> roots = cone.roots;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    std::vector<StableId> next;
    for (const StableId id : roots) {
      const NodeId node = NodeWithId(graph, id);
      const bool is_lost = std::ranges::find(other.roots, id) == other.roots.end();
      if (!is_lost || !node.valid() || !IsWait(graph, node)) continue;
      const NodeId launch = graph.value(graph.operands(node)[0]).def;
      if (!CollectiveOf(graph, launch)) continue;
      exchanges.push_back(ExchangeOf(graph, launch));
      const Cone more = ConeOf(graph, others, d.mesh, launch, false);
      exchanges.insert(exchanges.end(), more.exchanges.begin(), more.exchanges.end());
      next.insert(next.end(), more.roots.begin(), more.roots.end());
    }
    roots = std::move(next);
  }
  std::ranges::sort(exchanges);
  return exchanges;
}

/// Whether the graph before the pass has collectives, too.
bool IsLoweredBefore(const Difference& d) {
  return IsLowered(d.before);
}

}  // namespace

/// A sum or function of a rank's summand, before the sum over the ranks, or a summand of a rank
/// that is added after it.
std::optional<Diagnosis> Early(const Difference& d) {
  if (d.was.is_lowered_operator || d.was.computes) return std::nullopt;
  for (const NodeId node : d.is.inner) {
    if (BaseName(d.after.op(node)) == "add" && AddsToSum(d, node))
      return Diagnosis{
          BugKind::kPartialOperand,
          fmt::format("{} adds a rank's summand to a sum over the ranks", d.after.name(node))};
    if (!IsCollective(d.after, node, CollectiveKind::kAllReduce) &&
        !IsCollective(d.after, node, CollectiveKind::kReduceScatter))
      continue;
    const NodeId summand = d.after.value(d.after.operands(node)[0]).def;
    const bool is_new = !d.before_ids.contains(d.after.node(summand).stable_id);
    const bool is_made = BaseName(d.after.op(summand)).ends_with("_like");
    if (!is_new || !ComputesNumbers(d.after, summand) || is_made || IsScaling(d, summand)) continue;
    return Diagnosis{BugKind::kPartialOperand,
                     fmt::format("{} {} on every rank before {}", d.after.name(summand),
                                 BaseName(d.after.op(summand)) == "add" ? "adds" : "computes",
                                 d.after.name(node))};
  }
  return std::nullopt;
}

std::optional<Diagnosis> Exchanges(const Difference& d) {
  if (d.was.is_lowered_operator && !IsLoweredBefore(d)) return std::nullopt;
  const std::vector<Exchange> from = ExchangesOf(d, d.before, d.after_ids, d.was, d.is),
                              to = ExchangesOf(d, d.after, d.before_ids, d.is, d.was);
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

}  // namespace strata::prove
