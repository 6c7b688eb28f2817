#pragma once
#include <string>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Makes one graph of a forward and a backward that a schedule runs at once, OVERLAP_F_B:
/// `overlap.F0.B3` of stages 0 and 3. Run after `split-backward`.
///
///   stage0.forward   a = embedding(w, ids)               -> a
///   stage3.backward  gx = mm(gy, w)                      -> gx
///   overlap.F0.B3    gx = mm(gy, w)  a = embedding(…)    -> gx, a
///
/// Inputs, nodes and outputs of the backward stand before those of the forward and have names that
/// begin with `bw_`. Which of them runs when is left to later passes. The graphs of the stages
/// stay. Errors: a pair of another form, a stage that does not exist or is not split. Source:
/// torchtitan's multiplex_fw_bw_graph (GraphPP).
class MultiplexOverlaps final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "join the forward and backward graphs that a schedule overlaps";

  struct Options {
    std::string pairs;
    void Bind(OptionList& list);
  };
  explicit MultiplexOverlaps(Options options) : options_(std::move(options)) {}

  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

/// `overlap.F0.B3`.
std::string OverlapGraphName(int64_t forward_stage, int64_t backward_stage);

}  // namespace strata
