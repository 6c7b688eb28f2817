#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/config/parameters.h"
#include "runtime/files/tensor_files.h"

namespace strata {

/// Tensors of a model in files, under torchtitan's names or Hugging Face's, as fp32.
class InitialWeights {
 public:
  /// Errors, in one line: which of `specs` is missing or has another shape or a dtype of another
  /// kind (float, integers), and which tensors are not of this model.
  static Result<InitialWeights> Match(TensorFiles files, const TrainConfig& config,
                                      std::span<const ParameterSpec> specs);

  /// Row-major. REQUIRES: `spec` is one of those of `Match`; spec.elements() places in `out`.
  void Read(const ParameterSpec& spec, std::span<float> out) const;

  /// The tensor of this name as the files have it. Null: there is none.
  const TensorView* Find(std::string_view name) const { return files_.Find(name); }

 private:
  InitialWeights(TensorFiles files, const TrainConfig& config, bool is_hugging_face)
      : files_(std::move(files)), config_(config), is_hugging_face_(is_hugging_face) {}

  TensorFiles files_;
  TrainConfig config_;
  bool is_hugging_face_;
};

/// Moves the rows of each of `heads` heads from halves (x[j], x[j + width/2]) to pairs (x[2j],
/// x[2j+1]), or back. `from` and `to` are matrices of `rows` rows. REQUIRES: 2·heads divide rows.
void PermuteRows(std::span<const float> from, int64_t heads, int64_t rows, bool to_pairs,
                 std::span<float> to);

}  // namespace strata
