#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/files/safetensors.h"
#include "runtime/files/tensor_files.h"

/// Checkpoints: folders `step-N` with everything that a run needs to go on as if it had never
/// stopped.
///
///   model-00001-of-00002.safetensors …     parameters and persistent buffers, torchtitan's names
///   model.safetensors.index.json           which shard holds what; `--init` reads the folder
///   optimizer-00001-of-00002.safetensors … `state.<parameter>.exp_avg`, `.exp_avg_sq`,
///   `state.step` checkpoint.json                        step, place in the data, and size and hash
///   of each file
///
/// A folder is written under another name, made durable, and renamed: under its name it is
/// complete, whenever the program or the machine stops.
namespace strata {

/// What a checkpoint says beside its tensors.
struct CheckpointInfo {
  int64_t step = 0;  ///< steps done
  int64_t tokens_seen = 0;
  int64_t first_scheduled_step = 0;  ///< steps done when the learning rate's schedule began
  std::string data_position;         ///< DataSource::Position
  /// DataSource::Traits by their names; empty in checkpoints of versions that did not store them.
  std::map<std::string, std::string> data_traits = {};
  /// CourseFields of the run; empty as above.
  std::map<std::string, std::string> config = {};
  int64_t threads = 0;  ///< inside operators; 0: a run on a GPU, or a version that did not store it
  bool has_optimizer = true;     ///< false: the model alone, a run cannot resume
  bool is_hugging_face = false;  ///< names and layouts of the tensors
};

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

/// Steps of the complete checkpoints in a folder, ascending; none when there is no folder.
std::vector<int64_t> ListCheckpoints(const std::string& folder);

/// `<folder>/step-<step>`.
std::string CheckpointPath(const std::string& folder, int64_t step);

/// A checkpoint's content, mapped.
struct Checkpoint {
  CheckpointInfo info;
  TensorFiles model;
  std::optional<TensorFiles> optimizer;
};

/// Reads a checkpoint and compares every file with its size and hash. Errors: there is none of this
/// step, or its files are not those that were written.
Result<Checkpoint> LoadCheckpoint(const std::string& folder, int64_t step);

/// The same by the path of the folder `step-N`.
Result<Checkpoint> OpenCheckpoint(const std::string& path);

/// The tensors of a file or folder to start another training from. Of a folder `step-N` of
/// checkpoints every file is compared with its size and hash. Errors: as of TensorFiles::Open and
/// LoadCheckpoint.
Result<TensorFiles> OpenInitialTensors(const std::string& path);

}  // namespace strata
