#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "prove/diagnosis/rules.h"
#include "prove/evaluation/parts.h"

namespace strata::prove {
namespace {

constexpr std::string_view kAxisIndexOp = "strata.axis_index.default";

/// What a list of a node of both graphs has no more.
std::optional<Diagnosis> LostElement(const Difference& d) {
  const auto args = d.before.args(d.expected);
  const std::vector<ValueId> was = d.before.operands(d.expected), is = d.after.operands(d.node);
  if (args.empty() || !args[0].is_span() || was.size() <= is.size()) return std::nullopt;
  std::set<StableId> read;
  for (const ValueId operand : is)
    read.insert(d.after.node(d.after.value(operand).def).stable_id);
  for (const ValueId operand : was) {
    const NodeId def = d.before.value(operand).def;
    if (read.contains(d.before.node(def).stable_id)) continue;
    return Diagnosis{BugKind::kExchanged,
                     fmt::format("{} is not read by {}", d.before.name(def), d.after.name(d.node))};
  }
  return std::nullopt;
}

/// Whether a node of the graph before would have been found if it was wrong.
bool IsCompared(const Graph& before, NodeId node) {
  for (size_t i = 0; i < before.node(node).num_results; ++i) {
    const TypeId type = before.value(before.result(node, i)).type;
    if (!type.valid()) continue;
    if (!AreComparable(before.module(), before.module().types()[type].placements)) return false;
  }
  return true;
}

/// Nodes of a cone that are made of a rank's place.
std::set<NodeId> MadeOf(const Difference& d, NodeId index) {
  const std::set<NodeId> inner(d.is.inner.begin(), d.is.inner.end());
  std::set<NodeId> made;
  std::vector<NodeId> work = {index};
  while (!work.empty()) {
    const NodeId node = work.back();
    work.pop_back();
    for (const NodeId user : UsersOf(d.after, node))
      if (inner.contains(user) && made.insert(user).second) work.push_back(user);
  }
  return made;
}

bool Compares(const Graph& graph, NodeId node) {
  constexpr std::array<std::string_view, 6> kBases = {"lt", "le", "gt", "ge", "eq", "ne"};
  return std::ranges::find(kBases, BaseName(graph.op(node))) != kBases.end();
}

}  // namespace

/// What is wrong with a node of both graphs that the value is made of, directly or through others
/// that are not compared: norms of parts and rows of experts hide where they differ.
std::optional<Diagnosis> Earlier(const Difference& d) {
  std::vector<NodeId> work = {d.node};
  std::set<NodeId> seen = {d.node};
  while (!work.empty()) {
    const NodeId reader = work.back();
    work.pop_back();
    for (const ValueId operand : d.after.operands(reader)) {
      const NodeId node = d.after.value(operand).def;
      const StableId id = d.after.node(node).stable_id;
      if (!seen.insert(node).second) continue;
      if (d.before_ids.contains(id)) {
        const NodeId expected = NodeWithId(d.before, id);
        if (IsCompared(d.before, expected)) continue;
        const Difference earlier(d.before, expected, d.after, node, d.facts);
        for (const auto rule : {OwnCollective, OwnArguments, LostElement, LostRoots, NewOperation,
                                Exchanges, Parts, SameSlice})
          if (std::optional<Diagnosis> found = rule(earlier)) return found;
      }
      work.push_back(node);
    }
  }
  return std::nullopt;
}

std::optional<Diagnosis> IndexOfRank(const Difference& d) {
  for (const NodeId node : d.is.inner) {
    if (d.after.op(node) != kAxisIndexOp) continue;
    const std::set<NodeId> made = MadeOf(d, node);
    const auto mask =
        std::ranges::find_if(made, [&](NodeId other) { return Compares(d.after, other); });
    const std::string_view axis = d.after.module().str(d.after.args(node)[0].str());
    const std::string place = fmt::format("the rank's place on {}, {}", axis, d.after.name(node));
    if (mask == made.end())
      return Diagnosis{BugKind::kWrongPart, fmt::format("an offset is made of {}", place)};
    return Diagnosis{BugKind::kWrongMask,
                     fmt::format("a mask, {}, is made of {}", d.after.name(*mask), place)};
  }
  return std::nullopt;
}

}  // namespace strata::prove
