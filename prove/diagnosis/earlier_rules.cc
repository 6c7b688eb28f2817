#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"
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
        for (const auto rule :
             {OwnCollective, OwnArguments, LostElement, LostRoots, NewOperation, Exchanges})
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
    return Diagnosis{
        BugKind::kWrongPart,
        fmt::format("an offset or mask is made of the rank's place on {}, {}",
                    d.after.module().str(d.after.args(node)[0].str()), d.after.name(node))};
  }
  return std::nullopt;
}

}  // namespace strata::prove
