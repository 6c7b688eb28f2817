#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/config/parameters.h"
#include "runtime/files/tensor_files.h"

namespace strata {

/// Tensors of a model in files, under torchtitan's names or Hugging Face's, as fp32.
class InitialWeights {
 public:
  /// Errors, in one line: which of `specs` is missing or has another shape or a dtype other than
  /// float, and which tensors are not of this model.
  static Result<InitialWeights> Match(TensorFiles files, const TrainConfig& config,
                                      std::span<const ParameterSpec> specs);

  /// Row-major. REQUIRES: `spec` is one of those of `Match`; spec.elements() places in `out`.
  void Read(const ParameterSpec& spec, std::span<float> out) const;

 private:
  InitialWeights(TensorFiles files, const TrainConfig& config, bool is_hugging_face)
      : files_(std::move(files)), config_(config), is_hugging_face_(is_hugging_face) {}

  TensorFiles files_;
  TrainConfig config_;
  bool is_hugging_face_;
};

/// A tensor with bytes of its own.
struct OwnedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> values;
};

/// A tensor of Strata's as files with Hugging Face's names store it; `Read` reverses it.
std::vector<OwnedTensor> ExportToHuggingFace(const TrainConfig& config, const std::string& name,
                                             const std::vector<int64_t>& shape,
                                             std::span<const float> values);

}  // namespace strata
