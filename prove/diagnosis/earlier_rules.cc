#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ir/module.h"
#include "prove/diagnosis/rules.h"

namespace strata::prove {
namespace {

constexpr std::string_view kAxisIndexOp = "strata.axis_index.default";

/// What a node of both graphs reads no more.
std::optional<Diagnosis> LostOperand(const Difference& d) {
  const std::vector<ValueId> was = d.before.operands(d.expected), is = d.after.operands(d.node);
  if (was.size() <= is.size()) return std::nullopt;
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

}  // namespace

/// Values that cannot be compared, such as the norms of parts, hide where they differ.
std::optional<Diagnosis> Earlier(const Difference& d) {
  constexpr int kMaxDepth = 4;
  std::vector<NodeId> level = {d.node};
  std::set<NodeId> seen;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    std::vector<NodeId> next;
    for (const NodeId reader : level) {
      for (const ValueId operand : d.after.operands(reader)) {
        const NodeId node = d.after.value(operand).def;
        if (!seen.insert(node).second) continue;
        next.push_back(node);
        const StableId id = d.after.node(node).stable_id;
        if (!d.before_ids.contains(id)) continue;
        const Difference earlier(d.before, NodeWithId(d.before, id), d.after, node, d.facts);
        for (const auto rule : {OwnCollective, OwnArguments, LostOperand})
          if (std::optional<Diagnosis> found = rule(earlier)) return found;
      }
    }
    level = std::move(next);
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
