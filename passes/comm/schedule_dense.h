#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Moves the collectives of parameters and gradients away from the exchange of tokens between
/// experts: launches go into attention of the neighbouring layer, waits for gradients to the end.
///
///   before  A0 = all_gather(p0)                          backward of layer 0
///           d2 = mm(…)  d1 = mm(…)                       attention of layers 2 and 1
///           R2 = reduce_scatter(d2)  W2 = wait(R2)  d0 = mm(…)  u = mm(wait(A0))  output([u, W2])
///   after   d2 = mm(…)  A0 = all_gather(p0)  R2 = reduce_scatter(d2)  d1 = mm(…)  d0 = mm(…)
///           u = mm(wait(A0))  W2 = wait(R2)  output([u, W2])
///
/// - An all-gather of layer i goes into layer i-1 in forward, and into layer i+1 in backward; that
///   of the last layer in backward, into norm and lm_head. That of norm and lm_head goes into the
///   last layer, in forward.
/// - A reduce-scatter of layer i goes into layer i-1; that of norm and lm_head into the last layer.
/// - Each stands before the first product, norm or activation of that layer that follows what it
///   reads. Layers with experts have only those of attention. Others stay where they are.
///
/// Results are bitwise equal. Needs the buckets of bucket-transformer-blocks. Linear in the graph.
/// Errors: a bucket of two layers; with `strict`, layers without the buckets of the plan, and
/// collectives that cannot move.
/// Source: torchtitan's schedule_fsdp_comms_to_dense_regions_pass.
class ScheduleDenseRegions final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "launch collectives of parameters in attention of the neighbouring layer";

  struct Options {
    bool strict = false;
    std::string plan;
    void Bind(OptionList& list);
  };
  explicit ScheduleDenseRegions(Options options) : options_(std::move(options)) {}

  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
