#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/core/written_memory.h"
#include "prove/diagnosis/rules.h"

namespace strata::prove {

/// A launch that something else than a wait reads.
std::optional<Diagnosis> InFlight(const Difference& d) {
  if (!d.is_same && CollectiveOf(d.after, d.node))
    return Diagnosis{BugKind::kInFlight,
                     fmt::format("{} is returned before a wait", d.after.name(d.node))};
  std::vector<NodeId> readers = d.is.inner;
  readers.push_back(d.node);
  for (const NodeId reader : readers) {
    if (IsWait(d.after, reader)) continue;
    for (const ValueId operand : d.after.operands(reader)) {
      const NodeId def = d.after.value(operand).def;
      if (!CollectiveOf(d.after, def)) continue;
      return Diagnosis{BugKind::kInFlight, fmt::format("{} reads {} before a wait",
                                                       d.after.name(reader), d.after.name(def))};
    }
  }
  return std::nullopt;
}

/// Memory of an operand to which a new node writes.
std::optional<Diagnosis> Overwritten(const Difference& d) {
  std::set<ValueId> read;
  std::vector<NodeId> readers = d.is.inner;
  readers.push_back(d.node);
  for (const NodeId reader : readers)
    for (const ValueId operand : d.after.operands(reader))
      read.insert(OwnerOf(d.after, operand));
  for (const NodeId reader : readers) {
    if (!IsWait(d.after, reader)) continue;
    const NodeId launch = d.after.value(d.after.operands(reader)[0]).def;
    for (const ValueId sent : d.after.operands(launch))
      read.insert(OwnerOf(d.after, sent));
  }
  for (const NodeId node : d.after.nodes()) {
    if (d.before_ids.contains(d.after.node(node).stable_id) || !Mutates(d.after, node)) continue;
    if (std::ranges::find(d.is.inner, node) != d.is.inner.end()) continue;
    for (const ValueId operand : d.after.operands(node)) {
      if (!read.contains(OwnerOf(d.after, operand))) continue;
      return Diagnosis{
          d.facts.is_undefined ? BugKind::kInFlight : BugKind::kOverwritten,
          fmt::format("{} writes to {}", d.after.name(node), d.after.value_name(operand))};
    }
  }
  return std::nullopt;
}

}  // namespace strata::prove
