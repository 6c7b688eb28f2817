#include "runtime/train/files/checkpoint.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "runtime/train/files/checkpoint_folder.h"
#include "runtime/train/files/checkpoint_manifest.h"

namespace strata {
namespace {

/// What a folder has instead.
std::string DescribeThose(const std::string& folder) {
  std::vector<std::string> names;
  for (const int64_t step : ListCheckpoints(folder))
    names.push_back(std::to_string(step));
  return names.empty() ? "there are none" : fmt::format("there are those of {}", Enumerate(names));
}

/// Opens the folder `path`, whose manifest is `text`, and compares its files with it. `advice` says
/// what to do instead of using a damaged one.
Result<Checkpoint> Verify(const std::string& path, const std::string& text,
                          std::string_view advice) {
  const auto damaged = [&](std::string_view why) {
    return Error(ErrorCode::kCorrupt, "damaged checkpoint: {}: {}; {}", path, why, advice);
  };
  const Result<Manifest> manifest = ParseManifest(text);
  if (!manifest) return damaged(fmt::format("{}: {}", kManifest, manifest.error().message()));
  std::vector<std::string> model, optimizer;
  for (const ManifestFile& file : manifest->files) {
    const std::string file_path = fmt::format("{}/{}", path, file.name);
    const auto mapped = MappedFile::Open(file_path);
    if (!mapped) return damaged(fmt::format("{} is missing", OneLine(file.name)));
    if (std::ssize(mapped->bytes()) != file.bytes || ManifestHash(mapped->bytes()) != file.hash) {
      return damaged(fmt::format("{} is not what was written", OneLine(file.name)));
    }
    if (file.name.starts_with("model-")) model.push_back(file_path);
    if (file.name.starts_with("optimizer-")) optimizer.push_back(file_path);
  }
  STRATA_TRY(TensorFiles model_files, TensorFiles::OpenAll(path, model));
  Checkpoint checkpoint{.info = manifest->info, .model = std::move(model_files), .optimizer = {}};
  if (manifest->info.has_optimizer) {
    STRATA_TRY(checkpoint.optimizer, TensorFiles::OpenAll(path, optimizer));
  }
  return checkpoint;
}

}  // namespace

Result<Checkpoint> LoadCheckpoint(const std::string& folder, int64_t step) {
  const std::string path = CheckpointPath(folder, step);
  const auto text = ReadFile(fmt::format("{}/{}", path, kManifest));
  if (!text) {
    return Error(ErrorCode::kNotFound, "no checkpoint of step {}: {}: {}", step, folder,
                 DescribeThose(folder));
  }
  return Verify(path, *text, "remove the folder and resume from the one before");
}

Result<Checkpoint> OpenCheckpoint(const std::string& path) {
  const auto text = ReadFile(fmt::format("{}/{}", path, kManifest));
  if (!text) {
    return Error(ErrorCode::kNotFound, "not a checkpoint: {}: it has no {}; name a folder step-N",
                 path, kManifest);
  }
  return Verify(path, *text, "take another one");
}

Result<TensorFiles> OpenInitialTensors(const std::string& path) {
  const auto text = ReadFile(fmt::format("{}/{}", path, kManifest));
  if (!text) return TensorFiles::Open(path);
  STRATA_TRY(Checkpoint checkpoint, Verify(path, *text, "start from another one"));
  return std::move(checkpoint.model);
}

}  // namespace strata
