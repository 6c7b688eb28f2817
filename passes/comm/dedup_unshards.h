#pragma once
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Gathers a parameter once that is read at several places (tied weights, chunks of the loss).
///
///   before  g0 = all_gather(w)  w0 = wait(g0)  g1 = all_gather(w)  w1 = wait(g1)  s = add(w0, w1)
///   after   g0 = all_gather(w)  w0 = wait(g0)  s = add(w0, w0)
///
/// Chains are merged if their operators and arguments are equal, within forward or within backward:
/// gathering again in backward saves memory. With `across_phases`, backward reads the value of
/// forward too. Results are bitwise equal. Linear in the graph.
/// Errors: an all-gather of a parameter that is not read by its wait alone.
/// Source: torchtitan's canonicalization of FSDP unshard chains, which merges across phases, and
/// does not compare chains.
class DedupUnshards final : public Pass {
 public:
  static constexpr std::string_view kSummary = "gather each parameter once that several nodes read";

  struct Options {
    bool across_phases = false;
    void Bind(OptionList& list);
  };
  explicit DedupUnshards(Options options) : options_(options) {}

  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
