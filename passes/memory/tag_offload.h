#pragma once
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Tags saved results that backward reads to be offloaded: largest first, as many as fit into
/// `budget_gb` of the host's memory.
///
///   before  a = mm(x, w) {layers.0, MUST_SAVE}  …  g = mul(t, a) {backward}
///   after   a = mm(x, w) {layers.0, MUST_CPU_OFFLOAD}
///
/// Only attributes change; the pass `offload` does what they say. Results of the last layer stay,
/// because backward needs them at once; so do views, collectives, what is recomputed, and what
/// OffloadableBytes excludes. A result without a tag must have a reader in backward, and none that
/// is recomputed. Equal sizes keep program order. Source: torchtitan's
/// tag_all_offloadable_activations.
class TagOffload final : public Pass {
 public:
  struct Options {
    double budget_gb = 100;  ///< 2^30 bytes each; 0: no limit
    void Bind(OptionList& list) {
      list.Add("budget_gb", budget_gb,
               "memory of the host for offloaded results, GiB; 0: no limit");
    }
  };
  static constexpr std::string_view kSummary =
      "tag saved results to be copied to memory of the host until backward reads them";

  TagOffload() = default;
  explicit TagOffload(Options options) : options_(options) {}
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
