#pragma once
#include <cstdint>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"
#include "passes/pipeline/schedule/stage_ranks.h"

namespace strata {

/// Cuts the graphs that follow the steps of microbatches. Run after `split-stages`.
///
///   accumulate  a += da  b += db              stage0.accumulate  a += da
///   optimizer   n = norm(norm(a), norm(b))    optimizer.rank0    s = stack(norm(a), 0)
///               a' = update(a, n)                                s = all_reduce(s, pp)
///               b' = update(b, n)                                n = norm(s)  a' = update(a, n)
///
/// Nodes belong to the stage of their module; nodes of other modules, such as `clip` and `adamw`,
/// run on every rank. Scalars that these read of stages are summed over the axis `pp`, with zeros
/// in the places of other ranks: every rank gets the bits that one rank computes. The graphs
/// `accumulate` and `optimizer` stay. Copies come from their nodes in the provenance.
///
/// Errors: a step that is not cut, values between stages that are not scalars of one type.
class SplitOptimizer final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "cut optimizer and accumulation among the ranks of a pipeline";

  struct Options {
    int64_t ranks = 2;
    StageStyle style = StageStyle::kLoop;
    void Bind(OptionList& list);
  };
  explicit SplitOptimizer(Options options) : options_(options) {}

  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
