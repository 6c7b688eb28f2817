#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/result.h"
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
