#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Gives the all-gathers of parameters a communicator of their own, so that they run beside the
/// reductions of gradients.
///
///   before  g = all_gather(p, 8, 'fsdp')        r = reduce_scatter(d, 'sum', 8, 'fsdp')
///   after   g = all_gather(p, 8, 'fsdp#ag')     r = reduce_scatter(d, 'sum', 8, 'fsdp')
///
/// A group `fsdp#ag` has the ranks of `fsdp`. All all-gathers of a group move as soon as one of
/// them gathers a placeholder, through nodes with one input. Linear in the graph.
/// Source: torchtitan's reassign_collective_pgs_pass.
class ReassignGroups final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "give the all-gathers of parameters a communicator of their own";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
