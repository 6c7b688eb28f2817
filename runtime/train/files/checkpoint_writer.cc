#include "runtime/train/files/checkpoint_writer.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <future>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "runtime/files/safetensors.h"
#include "runtime/train/files/checkpoint_folder.h"
#include "runtime/train/files/checkpoint_manifest.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

/// One checkpoint's files, as they are written.
class FolderWriter {
 public:
  FolderWriter(std::string folder, int64_t shard_bytes)
      : folder_(std::move(folder)), shard_bytes_(shard_bytes) {}

  /// `<kind>-00001-of-00002.safetensors` …; returns the file of each tensor.
  Result<std::vector<std::pair<std::string, std::string>>> WriteShards(
      std::string_view kind, std::vector<TensorView> tensors) {
    std::ranges::sort(tensors, {}, &TensorView::name);
    std::vector<std::vector<TensorView>> shards(1);
    int64_t bytes = 0;
    for (TensorView& tensor : tensors) {
      const int64_t size = std::ssize(tensor.bytes);
      if (bytes > 0 && bytes + size > shard_bytes_) {
        shards.emplace_back();
        bytes = 0;
      }
      bytes += size;
      shards.back().push_back(std::move(tensor));
    }
    std::vector<std::pair<std::string, std::string>> places;
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string name =
          fmt::format("{}-{:05}-of-{:05}.safetensors", kind, i + 1, shards.size());
      for (const TensorView& tensor : shards[i])
        places.emplace_back(tensor.name, name);
      STRATA_RETURN_IF_ERROR(
          WriteSafetensors(Path(name), std::move(shards[i]), {{"format", "pt"}}));
      STRATA_RETURN_IF_ERROR(Note(name));
    }
    std::ranges::sort(places);
    return places;
  }

  Status WriteIndex(const std::vector<std::pair<std::string, std::string>>& places,
                    int64_t total_bytes) {
    std::string text;
    JsonWriter json(text);
    json.BeginObject().Key("metadata").BeginObject().Field("total_size", total_bytes).EndObject();
    json.Key("weight_map").BeginObject();
    for (const auto& [tensor, file] : places)
      json.Break(2).Field(tensor, file);
    json.EndObject().EndObject();
    text += '\n';
    STRATA_RETURN_IF_ERROR(WriteFile(Path("model.safetensors.index.json"), text));
    return Note("model.safetensors.index.json");
  }

  Status WriteManifest(const CheckpointInfo& info) {
    return WriteFile(Path(kManifest), PrintManifest(info, files_));
  }

 private:
  std::string Path(std::string_view name) const { return fmt::format("{}/{}", folder_, name); }

  Status Note(const std::string& name) {
    STRATA_TRY(const MappedFile file, MappedFile::Open(Path(name)));
    files_.push_back(
        {.name = name, .hash = ManifestHash(file.bytes()), .bytes = std::ssize(file.bytes())});
    return Ok();
  }

  std::string folder_;
  int64_t shard_bytes_;
  std::vector<ManifestFile> files_;
};

/// Tensors with bytes of their own.
struct Staged {
  explicit Staged(const CheckpointTensors& from) : tensors(from) {
    for (std::vector<TensorView>* group : {&tensors.model, &tensors.optimizer}) {
      for (TensorView& tensor : *group) {
        bytes.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
        tensor.bytes = bytes.back();
      }
    }
  }
  CheckpointTensors tensors;
  std::vector<std::vector<std::byte>> bytes;
};

int64_t TotalBytes(const std::vector<TensorView>& tensors) {
  int64_t total = 0;
  for (const TensorView& tensor : tensors)
    total += std::ssize(tensor.bytes);
  return total;
}

/// The files of a checkpoint, in a folder that is there.
Status WriteFiles(const std::string& folder, int64_t shard_bytes, const CheckpointInfo& info,
                  CheckpointTensors tensors) {
  FolderWriter writer(folder, shard_bytes);
  const int64_t model_bytes = TotalBytes(tensors.model);
  STRATA_TRY(const auto places, writer.WriteShards("model", std::move(tensors.model)));
  STRATA_RETURN_IF_ERROR(writer.WriteIndex(places, model_bytes));
  if (info.has_optimizer) {
    STRATA_TRY(const auto ignored, writer.WriteShards("optimizer", std::move(tensors.optimizer)));
  }
  STRATA_RETURN_IF_ERROR(writer.WriteManifest(info));
  return SyncFolder(folder);
}

Status WriteCheckpoint(const std::string& folder, const CheckpointWriter::Options& options,
                       const CheckpointInfo& info, CheckpointTensors tensors) {
  const std::string path = CheckpointPath(folder, info.step);
  const std::string aside = UnfinishedPath(path);
  std::error_code error;
  fs::remove_all(aside, error);
  if (!fs::create_directory(aside, error)) {
    return Error(ErrorCode::kIo, "cannot make a folder: {}: {}", aside, error.message());
  }
  if (const Status written = WriteFiles(aside, options.shard_bytes, info, std::move(tensors));
      !written) {
    fs::remove_all(aside, error);  // A full disk has use for the room.
    return written;
  }
  STRATA_RETURN_IF_ERROR(NameCheckpoint(aside, path));
  STRATA_RETURN_IF_ERROR(SyncFolder(folder));

  if (options.replace_after) {
    for (const int64_t step : ListCheckpoints(folder)) {
      if (step > *options.replace_after && step != info.step)
        STRATA_RETURN_IF_ERROR(RemoveCheckpoint(CheckpointPath(folder, step)));
    }
  }
  if (options.keep_latest_k == 0) return Ok();
  std::vector<int64_t> steps = ListCheckpoints(folder);
  // Those of later steps are of a course that was left: older than all of this one.
  std::ranges::stable_partition(steps, [&](int64_t step) { return step > info.step; });
  const int64_t surplus = std::ssize(steps) - options.keep_latest_k;
  for (int64_t i = 0; i < surplus; ++i)
    STRATA_RETURN_IF_ERROR(RemoveCheckpoint(CheckpointPath(folder, steps[static_cast<size_t>(i)])));
  return Ok();
}

}  // namespace

struct CheckpointWriter::State {
  std::string folder;
  Options options;
  std::future<Status> writing;

  Status Wait() { return writing.valid() ? writing.get() : Ok(); }
};

CheckpointWriter::CheckpointWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckpointWriter::CheckpointWriter(CheckpointWriter&&) noexcept = default;
CheckpointWriter& CheckpointWriter::operator=(CheckpointWriter&&) noexcept = default;
CheckpointWriter::~CheckpointWriter() = default;

Result<CheckpointWriter> CheckpointWriter::Open(const std::string& folder, const Options& options) {
  STRATA_RETURN_IF_ERROR(MakeFolder(folder));
  RemoveLeftovers(folder);
  auto state = std::make_unique<State>();
  state->folder = folder;
  state->options = options;
  return CheckpointWriter(std::move(state));
}

Status CheckpointWriter::Save(const CheckpointInfo& info, const CheckpointTensors& tensors) {
  STRATA_RETURN_IF_ERROR(state_->Wait());
  Options options = state_->options;
  state_->options.replace_after.reset();
  if (options.mode == AsyncMode::kDisabled) {
    return WriteCheckpoint(state_->folder, options, info, tensors);
  }
  state_->writing =
      std::async(std::launch::async,
                 [folder = state_->folder, options, info,
                  staged = std::make_unique<Staged>(tensors)]() -> Status {
                   return WriteCheckpoint(folder, options, info, std::move(staged->tensors));
                 });
  return Ok();
}

Status CheckpointWriter::Wait() {
  return state_->Wait();
}

}  // namespace strata
