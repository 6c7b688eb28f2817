#pragma once
#include <memory>
#include <optional>
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

namespace strata {

/// A training step that another program traced, as a joint graph of forward and backward:
///
///   inputs   parameters and constants of float types; of int64 `[batch, seq]` tokens, labels and,
///            where there is a third, positions
///   outputs  a scalar, the loss, and a gradient for each parameter, in the order of the parameters
///
/// A float input without a gradient is a constant of the model, a rope table. Inputs have the names
/// that `InputName` gives (runtime/files/tensor_io.h).
class JointProgram {
 public:
  /// Takes a copy of the graph. Errors: another form of graph, sizes that are not constant or not
  /// those of `config`, operators that cannot be executed.
  static Result<std::shared_ptr<JointProgram>> Make(const Module& module, GraphId graph,
                                                    const TrainConfig& config);

  const std::vector<ParameterSpec>& parameters() const { return parameters_; }
  /// A complex constant `x` is `x#complex`, whose last size holds real and imaginary parts.
  const std::vector<ParameterSpec>& constants() const { return constants_; }
  bool has_positions() const { return has_positions_; }

  void SetConstants(const InitialWeights& given);
  /// In the order of `constants`, in the types that the graph wants.
  std::span<const at::Tensor> constant_values() const { return constant_values_; }
  /// The same without values, on the Meta device.
  std::vector<at::Tensor> MetaConstants() const;

  /// `[loss, gradient of each parameter…]`, fp32, as calls of the graph's operators: parameters,
  /// fp32, are cast to the types that the graph wants, gradients back. Batch: tokens, labels,
  /// positions. For tracing, on Meta tensors. Throws what operators throw.
  std::vector<at::Tensor> Run(std::span<const at::Tensor> parameters,
                              std::span<const at::Tensor> constants,
                              std::span<const at::Tensor> batch) const;

  /// Gives nodes of `traced`, made by `Run`, the module paths, phases and places of the program's
  /// nodes that they come from.
  void CopyPlaces(Graph& traced) const;

 private:
  enum class Role : uint8_t { kParameter, kConstant, kBatch };
  struct Input {
    Role role = Role::kParameter;
    size_t index = 0;  ///< among those of its role
    DType dtype = DType::kUnknown;
  };
  JointProgram() = default;
  Status FindInputs(const TrainConfig& config);

  std::unique_ptr<Module> module_;
  GraphId graph_;
  Plan plan_;  ///< of the graph on Meta devices
  std::vector<Input> inputs_;
  std::vector<ParameterSpec> parameters_, constants_;
  std::vector<at::Tensor> constant_values_;
  bool has_positions_ = false;
};

}  // namespace strata
