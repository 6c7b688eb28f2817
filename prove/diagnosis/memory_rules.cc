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

/// Memory of an operand, or of a written input, to which a node that is gone wrote.
std::optional<Diagnosis> LostWrite(const Difference& d) {
  std::set<ValueId> read;
  std::vector<NodeId> readers = d.was.inner;
  readers.push_back(d.expected);
  for (const NodeId reader : readers) {
    for (const ValueId operand : d.before.operands(reader))
      read.insert(OwnerOf(d.before, operand));
    for (size_t i = 0; i < d.before.node(reader).num_results; ++i)
      read.insert(OwnerOf(d.before, d.before.result(reader, i)));
  }
  for (const NodeId node : d.before.nodes()) {
    if (d.after_ids.contains(d.before.node(node).stable_id) || !Mutates(d.before, node)) continue;
    if (CollectiveOf(d.before, node) || d.before.operands(node).empty()) continue;
    const ValueId written = d.before.operands(node)[0];
    if (!read.contains(OwnerOf(d.before, written))) continue;
    return Diagnosis{BugKind::kMissingOperation,
                     fmt::format("{} ({}), which writes to {}, is left out", d.before.name(node),
                                 d.before.op(node), d.before.value_name(written))};
  }
  return std::nullopt;
}

}  // namespace strata::prove
