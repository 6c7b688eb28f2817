#pragma once
#include <cstdint>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Merges neighbouring collectives of parameters and gradients up to a size, whatever modules they
/// belong to, and moves them as bucket-transformer-blocks does. For models without layers.
///
///   before  a0 = all_gather(p0)  w0 = wait(a0)  …  a9 = all_gather(p9)  w9 = wait(a9)
///   after   b = all_gather(pack(p0, …, p4))  c = all_gather(pack(p5, …, p9))  w = wait(b)  …
///
/// Results are bitwise equal. Linear in nodes.
/// Source: schedule_overlap_bucketing of torch._inductor.fx_passes, without its schedule.
class BucketBySize final : public Pass {
 public:
  static constexpr std::string_view kSummary = "merge neighbouring collectives up to a size";

  struct Options {
    double max_mb = 2000;
    bool reorder = true;
    void Bind(OptionList& list);
  };
  explicit BucketBySize(Options options) : options_(options) {}

  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
