#pragma once
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/files/safetensors.h"
#include "runtime/models/model.h"
#include "runtime/train/files/checkpoint.h"
#include "runtime/train/programs/initial_weights.h"
#include "runtime/train/programs/programs.h"

namespace strata {

/// What a training carries from step to step, on the device where it trains, and how files hold it.
class TrainingState {
 public:
  /// Before step 1; parameters and buffers as `given`, or initialized as the configuration says.
  TrainingState(const TrainSpec& spec, const std::optional<InitialWeights>& given,
                c10::Device device);

  // In the order of TrainSpec::model; steps change them in place.
  std::vector<at::Tensor> parameters, buffers;
  OptimizerState optimizer;
  at::Tensor rope_table;  ///< of the model; steps read it; undefined: none
  /// Of a program, in the order of JointProgram::constants; it may change them in place.
  std::vector<at::Tensor> constants;

  ModelTensors model() const {
    return {.parameters = parameters, .buffers = buffers, .rope_table = rope_table};
  }

  /// Each tensor: parameters, buffers, the rope table of a model that has one, constants, exp_avg,
  /// exp_avg_sq, step, learning rates. A copy of a state has the same tensors.
  std::vector<at::Tensor*> Tensors();
  void MoveTo(c10::Device device);

  // Named views. Their bytes are valid until the next step: those of a GPU are copies that
  // `ReleaseViews` frees.
  std::vector<TensorView> ModelViews() const;  ///< parameters, then buffers, then constants
  std::vector<TensorView> OptimizerViews() const;
  /// Of one tensor for each parameter, by its name.
  std::vector<TensorView> ViewsByParameter(std::span<const at::Tensor> tensors) const;
  void ReleaseViews() { host_copies_.clear(); }

  /// Overwrites everything with the checkpoint's, but what is excluded. Errors: a checkpoint of the
  /// model alone; tensors that are not this configuration's.
  Status Restore(const Checkpoint& checkpoint, const CheckpointConfig::Exclude& exclude);

 private:
  std::vector<TensorView> Views(std::span<const ParameterSpec> specs,
                                std::span<const at::Tensor> tensors, std::string_view format) const;
  std::vector<at::Tensor> StoredConstants() const;
  TensorView ViewOnHost(std::string name, const at::Tensor& tensor) const;

  ModelSpecs specs_;
  bool has_rope_table_;
  std::vector<ParameterSpec> constant_specs_;
  mutable std::vector<at::Tensor> host_copies_;
};

/// A state that a thread may still be making: `get` waits for it, and throws what making it threw.
using FutureState = std::shared_future<std::shared_ptr<TrainingState>>;

/// Makes a state beside what the calling thread does next; with one thread, before that.
/// REQUIRES: `spec` outlives the future.
FutureState MakeBeside(const TrainSpec& spec, std::optional<InitialWeights> given,
                       c10::Device device, int threads);
/// One that is there.
FutureState Ready(TrainingState state);

}  // namespace strata
