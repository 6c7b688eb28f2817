#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Moves collectives so that, by a cost model, computation hides them.
///
///   before  h = mm(x, w)  a = all_gather(p)  v = wait(a)  r = mm(h, v)
///   after   a = all_gather(p)  h = mm(x, w)  v = wait(a)  r = mm(h, v)
///
/// - A gather of parameters is launched as late as its result is in time for the wait, after the
///   gathers that are waited for later; earlier by no more than `max_ahead_mb` of results that
///   wait.
/// - The wait for a reduction of gradients, with what reads it, stands where the reduction has
///   ended, or before the output.
/// - The wait for any other collective stands before its first reader.
///
/// Results are bitwise equal. Estimates are those of `strata simulate`. Linear in the graph, apart
/// from sorting. Errors: a topology that cannot be read, or that does not fit the mesh.
/// Source: the overlap scheduling of torch._inductor.fx_passes.overlap_scheduling; this is a
/// schedule of each stream as late, or as early, as possible, not a list schedule.
class OverlapCollectives final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "move collectives beside the computation that hides them, by a cost model";

  struct Options {
    std::string topology = "h100";
    double max_ahead_mb = 2000;
    void Bind(OptionList& list);
  };
  explicit OverlapCollectives(Options options) : options_(std::move(options)) {}

  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
