#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Cuts the step of a training into the stages of a pipeline: graphs `stage0`, `stage1`, … of one
/// microbatch, forward and backward together. The graph `step` stays and shows the cut: its nodes
/// get the attribute `stage`.
///
///   step    x = embedding(tokens)  y = mm(x, w)  loss = f(y)  gy = …  gx = mm(gy, t(w))
///   stage0  x = embedding(tokens)  …                      -> activation x; grad, reads gradient gx
///   stage1  y = mm(x, w)  loss = f(y)  gy = …  gx = …     -> loss; grad w, gradient gx
///
/// A value that another stage reads passes through all stages between them. Inputs and outputs of
/// a stage have slots (passes/pipeline/slots.h): the inputs of the step that it reads, activations
/// of the previous stage, gradients of the next; loss, extra outputs, activations, gradients of its
/// parameters, gradients for the previous stage. Nodes that depend on no parameter, such as masks,
/// are copied to each stage that reads them. Copies come from the nodes of the step in the
/// provenance. Cost is linear in nodes and crossing values.
///
/// A parameter that several stages read, such as tied embeddings, is an input of each of them. It
/// belongs to the first: gradients of the others pass through the stages between, and are summed
/// there as in the step. The graph `validate` is cut in the same way: `stage0.validate`, ….
///
/// Stages get equally many layers, or take equally long (passes/pipeline/balance.h), or have the
/// modules that the option names.
///
/// Errors: stages that the layers do not fill; of a module list: a module that no node is of,
/// missing modules with parameters, a module that reads what a later stage computes; those of
/// BalancedStages; a module without graph `step`.
/// Source: torchtitan's pipeline_llm and GraphPP.
class SplitStages final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "cut the step into pipeline stages by module path, a graph each";

  struct Options {
    int64_t stages = 2;
    int64_t first_less = 1, last_less = 1;
    std::string modules;
    bool balance = false;
    std::string topology, times;
    void Bind(OptionList& list);
  };
  explicit SplitStages(Options options) : options_(std::move(options)) {}

  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

/// Attribute of a node of the step: the number of its stage.
inline constexpr std::string_view kStageAttribute = "stage";
/// Attribute of the step's output node: StageModules::Text.
inline constexpr std::string_view kStageModulesAttribute = "stage_modules";

}  // namespace strata
