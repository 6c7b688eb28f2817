#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/result.h"
#include "runtime/train/config.h"
#include "runtime/train/safetensors.h"

namespace strata {

/// Token ids for every batch of a run, `[batches, batch, seq + 1]`: batch s feeds [s, :, :-1] and
/// has the labels [s, :, 1:]. A step takes `accumulation_steps` of them. Every id is in [0,
/// vocab_size).
class TokenData {
 public:
  /// Tensor `tokens` (I64) of a safetensors file. It may hold more steps than the run takes, not
  /// fewer. Errors name the tensor, or the first token outside the vocabulary with its place.
  static Result<TokenData> Load(const std::string& path, const TrainConfig& config);

  /// Data for a run without a file, which a model can learn: with A = min(32, vocab_size), id t is
  /// followed by (5·t + 1) mod A, and by any id below A in one of eight cases. A function of seed,
  /// step, batch_size and seq_len.
  static TokenData Synthetic(const TrainConfig& config) { return TokenData(config); }

  int64_t steps() const { return steps_; }
  /// `[batch, seq + 1]`, row-major. REQUIRES: 0 <= step < steps().
  std::vector<int64_t> Step(int64_t step) const;

 private:
  /// Synthetic, until it has a file.
  explicit TokenData(const TrainConfig& config);

  int64_t steps_ = 0;
  int64_t rows_ = 0;     // of a step: batch
  int64_t columns_ = 0;  // seq + 1
  std::optional<SafetensorsFile> file_;
  // Of synthetic tokens, made when they are asked for.
  uint64_t alphabet_ = 0;
  uint64_t key_ = 0;
};

}  // namespace strata
