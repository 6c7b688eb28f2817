#include "prove/evaluation/drawn_values.h"

namespace strata::prove {

void DrawnValues::Keep(NodeId node, std::span<const Value> results) {
  if (draws_.IsDraw(node)) drawn_.insert_or_assign(node, CopyOf(results[0]));
}

GivenResults DrawnValues::ResultsIn(const Graph& after) const {
  GivenResults results;
  if (draws_.empty()) return results;
  for (const NodeId node : after.nodes()) {
    const NodeId draw = draws_.DrawOf(after, node);
    if (draw.valid()) results.emplace(node, Values{CopyOf(drawn_.at(draw))});
    // Any number will do: what the calls that read it return is given.
    if (IsSeed(after, node)) results.emplace(node, Values{Tensor(Domain::kInteger, {}, 0)});
  }
  return results;
}

}  // namespace strata::prove
