#pragma once
#include <string>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Marks nodes for regional compilation: attributes `custom.compile_with_inductor` and, with a
/// name, `custom.inductor_region`.
///
///   before  r = _fused_rms_norm(x, …)            a = add(x, y)  b = mul(a, 2)
///   after   the same, each {custom.compile_with_inductor={}}
///
/// Norms are marked with the nodes that take their elements. A chain is an elementwise operator or
/// a reduction over rows that reads or feeds another one; views between them are marked too.
/// `modules` and `ops` mark what they name. Older annotations stay.
/// Source: torchtitan graph_trainer `annotate_rmsnorm_for_regional_inductor`, and its branch that
/// tags pointwise chains.
class AnnotateRegions final : public Pass {
 public:
  struct Options {
    bool norms = true, chains = true;
    std::string modules = {}, ops = {}, region = {}, config = {};
    void Bind(OptionList& list) {
      list.Add("norms", norms, "mark norms that are one operator");
      list.Add("chains", chains, "mark elementwise operators and sums of rows beside others");
      list.Add("modules", modules, "mark modules, with what is inside: layers.*.feed_forward|norm");
      list.Add("ops", ops, "mark operators: aten.mm.default|aten.silu.default");
      list.Add("region", region, "the name of the region that the nodes are of");
      list.Add("config", config, "configuration of the compiler, a Python dictionary");
    }
  };
  static constexpr std::string_view kSummary = "mark nodes for regional compilation";

  AnnotateRegions() = default;
  explicit AnnotateRegions(const Options& options) : options_(options) {}
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
