#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/result.h"
#include "runtime/train/config.h"
#include "runtime/train/safetensors.h"

namespace strata {

/// Token ids for every step of a run, `[steps, batch, seq + 1]`: step s feeds [s, :, :-1] and has
/// the labels [s, :, 1:]. Every id is in [0, vocab_size).
class TokenData {
 public:
  /// Tensor `tokens` (I64) of a safetensors file. It may hold more steps than the run takes, not
  /// fewer. Errors name the tensor, or the first token outside the vocabulary with its place.
  static Result<TokenData> Load(const std::string& path, const TrainConfig& config);

  /// Data for a run without a file: sentences over a small alphabet that follow each other by a
  /// rule (see .cc) with some noise, so that a model can learn them. A function of seed,
  /// vocab_size, seq_len, batch_size and the step.
  static TokenData Synthetic(const TrainConfig& config);

  int64_t steps() const { return steps_; }
  /// `[batch, seq + 1]`, row-major. REQUIRES: 0 <= step < steps().
  std::vector<int64_t> Step(int64_t step) const;

 private:
  TokenData() = default;

  int64_t steps_ = 0;
  int64_t rows_ = 0;     // per step: batch
  int64_t columns_ = 0;  // seq + 1
  // Of a file; synthetic tokens are made when asked for.
  std::optional<SafetensorsFile> file_;
  int64_t vocab_size_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace strata
