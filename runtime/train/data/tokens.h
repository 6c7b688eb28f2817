#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/files/safetensors.h"
#include "runtime/train/data/data_file.h"
#include "runtime/train/data/traits.h"

namespace strata {

/// Token ids for every batch of a run, `[batch, seq + 1]`: a batch feeds [:, :-1] and has the
/// labels
/// [:, 1:]. A step takes `accumulation_steps` of them. Every id is in [0, vocab_size).
class TokenData {
 public:
  /// Of a safetensors file the tensor `tokens`, I64 `[batches, batch, seq + 1]`; or the tensors
  /// `tokens.0`, `tokens.1`, …, one per batch, whose sizes may differ where `config.compile` makes
  /// them dynamic. It may hold more batches than the run takes, not fewer. Errors name the tensor,
  /// or the first token outside the vocabulary with its place.
  static Result<TokenData> Load(const std::string& path, const TrainConfig& config);

  /// Data for a run without a file, which a model can learn: with A = min(32, vocab_size), id t is
  /// followed by (5·t + 1) mod A, and by any id below A in one of eight cases. A function of seed,
  /// step, batch_size and seq_len.
  static TokenData Synthetic(const TrainConfig& config) { return TokenData(config); }

  int64_t steps() const { return steps_; }
  struct Shape {
    int64_t rows = 0, columns = 0;  ///< batch, seq + 1
  };
  /// Of a batch. REQUIRES: 0 <= step < steps().
  Shape shape(int64_t step) const;
  /// Its ids, row-major. REQUIRES: 0 <= step < steps(). Errors: the file became shorter.
  Result<std::vector<int64_t>> Read(int64_t step) const;
  /// The same of synthetic data. REQUIRES: no file.
  std::vector<int64_t> Step(int64_t step) const;
  /// What they are a function of.
  std::vector<DataTrait> Traits() const;

 private:
  /// Synthetic, until it has a file.
  explicit TokenData(const TrainConfig& config);

  /// Takes the tensors of `config`'s batches; `base` is where the file's bytes begin.
  Status TakeTensor(const SafetensorsFile& file, const std::byte* base, const TrainConfig& config);
  Status TakeBatches(const SafetensorsFile& file, const std::byte* base, const TrainConfig& config);
  Status CheckIds(const TensorView& tokens, int64_t offset, int64_t vocab_size) const;

  int64_t steps_ = 0;
  Shape shape_;                // of every batch, or
  std::vector<Shape> shapes_;  // by batch
  std::optional<DataFile> file_;
  std::vector<int64_t> offsets_;  // of the batches in the file, in bytes
  std::string content_;           // of the file's tensors
  // Of synthetic tokens, made when they are asked for.
  uint64_t alphabet_ = 0;
  uint64_t key_ = 0;
  uint64_t seed_ = 0;
};

}  // namespace strata
