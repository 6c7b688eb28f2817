#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "ir/module.h"
#include "runtime/config/config.h"
#include "runtime/config/parameters.h"
#include "runtime/plan/plan.h"
#include "runtime/train/programs/initial_weights.h"
#include "runtime/train/programs/program_form.h"

namespace strata {

/// A training step that another program traced, as a joint graph of forward and backward
/// (runtime/train/programs/program_form.h).
class JointProgram {
 public:
  /// Takes a copy of the graph. Errors: another form of graph, sizes that are not constant or not
  /// those of `config`, operators that cannot be executed.
  static Result<std::shared_ptr<JointProgram>> Make(const Module& module, GraphId graph,
                                                    const TrainConfig& config);

  const std::vector<ParameterSpec>& parameters() const { return form_.parameters; }
  /// A complex constant `x` is `x#complex`, whose last size holds real and imaginary parts.
  const std::vector<ParameterSpec>& constants() const { return form_.constants; }
  /// Where the form of the graph has more than one reading.
  const std::vector<std::string>& warnings() const { return form_.warnings; }

  /// In the order of `constants`, in the types that the graph wants. REQUIRES: `given` has them.
  std::vector<at::Tensor> Constants(const InitialWeights& given) const;
  /// The same without values, on the Meta device.
  std::vector<at::Tensor> MetaConstants() const;

  /// `[loss, gradient of each parameter…]`, fp32, as calls of the graph's operators: parameters,
  /// fp32, are cast to the types that the graph wants, gradients back. New values are copied to
  /// their constants. Batch: tokens, labels, positions. For tracing, on Meta tensors. Throws what
  /// operators throw.
  std::vector<at::Tensor> Run(std::span<const at::Tensor> parameters,
                              std::span<const at::Tensor> constants,
                              std::span<const at::Tensor> batch) const;

  /// Gives nodes of `traced`, made by `Run`, the module paths and places of the program's nodes
  /// that they come from, and phases.
  void CopyPlaces(Graph& traced) const;

 private:
  JointProgram() = default;

  std::unique_ptr<Module> module_;
  GraphId graph_;
  Plan plan_;  ///< of the graph on Meta devices
  ProgramForm form_;
};

}  // namespace strata
