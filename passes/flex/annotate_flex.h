#pragma once
#include <string>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Marks flex attention and its bodies for a regional compiler: attribute
/// `custom.compile_with_inductor`.
///
///   before  m = attr mask_mod_0(…)  o = flex_attention(q, k, v, …, m, …)
///   after   m = attr mask_mod_0(…)  o = flex_attention(q, k, v, …, m, …)
///             both {custom.compile_with_inductor={'inductor_configs': CONFIG}}, and the nodes of
///             the bodies with the configuration of masks
///
/// Overwrites older annotations. Attributes that are tensors stay as they are. A body that several
/// nodes share is marked once. Source: torchtitan graph_trainer
/// `annotate_flex_attention_for_regional_inductor`.
class AnnotateFlex final : public Pass {
 public:
  struct Options {
    std::string config, mask_config;
    void Bind(OptionList& list) {
      list.Add("config", config, "configuration of the operator's compiler, a Python dictionary");
      list.Add("mask-config", mask_config, "the same for the nodes of bodies");
    }
  };
  static constexpr std::string_view kSummary = "mark flex attention for regional compilation";

  AnnotateFlex() = default;
  explicit AnnotateFlex(const Options& options) : options_(options) {}
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
