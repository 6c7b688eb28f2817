#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Reorders the chunks of a module so that exchanges of tokens run while another chunk computes:
///
///   before  dispatch0 wait0 experts0 combine0 …  dispatch1 wait1 experts1 combine1 …
///   after   dispatch0 dispatch1 shared0 shared1 wait0 experts0 combine0 wait1 experts1 combine1 …
///
/// Only the order changes, with what the attributes say of it: the wait of an exchange has its
/// label as `EP_token_exchange_wait`, and copies of counts that need not block are `non_blocking`.
/// Chunks take turns in the order of their numbers, in backward last chunk first.
///
/// With a topology the order follows the cost model of `strata simulate`, also across layers:
/// chunks then pass from layer to layer without being joined (overlap_by_cost.h).
/// Source: torchtitan's graph_trainer, ep_overlap_pass.
class EpOverlap final : public Pass {
 public:
  struct Options {
    std::string module_fqn = "layers.*.moe";
    bool pair_first_token_exchange = false;
    bool require_all_to_all = true;
    std::string topology = "";  ///< "": rounds, without costs
    void Bind(OptionList& list) {
      list.Add("module_fqn", module_fqn, "modules whose chunks are reordered");
      list.Add("pair_first_token_exchange", pair_first_token_exchange,
               "launch the first exchanges of all chunks together: for layers.*.moe");
      list.Add("require_all_to_all", require_all_to_all, "fail where no chunk exchanges tokens");
      list.Add("topology", topology,
               "order chunks by what nodes cost there: a name or a TOML file (default: in rounds)");
    }
  };
  static constexpr std::string_view kSummary =
      "reorder chunks so that exchanges of tokens overlap with work";

  EpOverlap() = default;
  explicit EpOverlap(Options options) : options_(std::move(options)) {}
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
