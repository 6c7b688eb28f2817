#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/files/safetensors.h"
#include "runtime/train/files/checkpoint.h"

namespace strata {

/// Tensors to be written. The bytes are copied or written before `Save` returns.
struct CheckpointTensors {
  std::vector<TensorView> model, optimizer;
};

/// Writes the checkpoints of one run.
class CheckpointWriter {
 public:
  struct Options {
    AsyncMode mode = AsyncMode::kDisabled;
    int64_t keep_latest_k = 0;                ///< 0: all
    int64_t shard_bytes = int64_t{4} << 30U;  ///< a file is closed when it holds as many
    /// The first save removes checkpoints of later steps than this, which are of another run.
    std::optional<int64_t> replace_after = std::nullopt;
  };

  /// Makes the folder and removes what a killed run left unfinished in it. Errors: not a folder, or
  /// not writable.
  static Result<CheckpointWriter> Open(const std::string& folder, const Options& options);
  CheckpointWriter(CheckpointWriter&&) noexcept;
  CheckpointWriter& operator=(CheckpointWriter&&) noexcept;
  /// Waits for what is being written.
  ~CheckpointWriter();

  /// Writes `step-<info.step>`, replacing one of that name, then removes the oldest beyond those to
  /// keep; first of all those of later steps, which a run left before it resumed from an earlier
  /// one. kAsync: copies the tensors, waits for the save before, and returns while a thread writes.
  /// Errors are those of this save, or with kAsync of the one before.
  Status Save(const CheckpointInfo& info, const CheckpointTensors& tensors);
  /// Returns when everything is on disk.
  Status Wait();

 private:
  struct State;
  explicit CheckpointWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace strata
