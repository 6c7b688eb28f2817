#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Gives the token exchange of experts a communicator of its own, where it shares one with other
/// collectives.
///
///   before  g = all_gather(p, 8, 'fsdp')    x = all_to_all_single(t, so, si, 'fsdp')
///   after   g = all_gather(p, 8, 'fsdp')    x = all_to_all_single(t, so, si, 'fsdp#ep')
///
/// A group is shared if an all-gather, reduce-scatter or all-reduce has the same name; groups of
/// equal ranks under two names are two communicators already. Linear in the graph.
/// Source: torchtitan's isolate_ep_process_group_pass.
class IsolateExpertGroups final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "give all-to-alls a communicator of their own where they share one";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
