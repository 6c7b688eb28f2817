#include "runtime/train/files/checkpoint_folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
// Of folders that are being written, or removed.
constexpr std::string_view kUnfinished = ".partial";
constexpr std::string_view kRemoved = ".removed";

std::optional<int64_t> StepOf(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t step = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), step);
  if (read.ec != std::errc() || read.ptr != name.data() + name.size() || step < 0)
    return std::nullopt;
  return step;
}

Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return Ok();
  return Error(ErrorCode::kIo, "cannot rename: {} to {}: {}", from, to, error.message());
}

}  // namespace

std::string CheckpointPath(const std::string& folder, int64_t step) {
  return fmt::format("{}/{}{}", folder, kPrefix, step);
}

std::vector<int64_t> ListCheckpoints(const std::string& folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::optional<int64_t> step = StepOf(entry.path().filename().string());
    if (step && fs::exists(entry.path() / kManifest, error)) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

std::string UnfinishedPath(const std::string& path) {
  return path + std::string(kUnfinished);
}

void RemoveLeftovers(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const fs::path name = entry.path().filename();
    const std::string suffix = name.extension().string();
    const bool is_ours = StepOf(name.stem().string()).has_value();
    if (is_ours && (suffix == kUnfinished || suffix == kRemoved)) leftovers.push_back(entry.path());
  }
  for (const fs::path& leftover : leftovers)
    fs::remove_all(leftover, error);
}

Status SyncFolder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (synced) return Ok();
  return Error(ErrorCode::kIo, "cannot make durable: {}: {}", folder, std::strerror(error));
}

Status MakeFolder(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> missing;
  for (fs::path path = folder; !path.empty() && !fs::is_directory(path, error);
       path = path.parent_path()) {
    missing.push_back(path);
  }
  error.clear();
  fs::create_directories(folder, error);
  if (std::error_code ignored; !fs::is_directory(folder, ignored)) {
    return Error(ErrorCode::kIo, "cannot make a folder: {}: {}; choose another dump_folder", folder,
                 error ? error.message() : "a file has this name");
  }
  for (const fs::path& path : missing) {
    const fs::path above = path.parent_path();
    STRATA_RETURN_IF_ERROR(SyncFolder(above.empty() ? "." : above.string()));
  }
  return Ok();
}

Status RemoveCheckpoint(const std::string& path) {
  const std::string aside = path + std::string(kRemoved);
  std::error_code error;
  fs::remove_all(aside, error);
  STRATA_RETURN_IF_ERROR(Rename(path, aside));
  fs::remove_all(aside, error);
  if (!error) return Ok();
  return Error(ErrorCode::kIo, "cannot remove: {}: {}", aside, error.message());
}

Status NameCheckpoint(const std::string& aside, const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return Rename(aside, path);
  if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0) {
    STRATA_RETURN_IF_ERROR(RemoveCheckpoint(path));  // a file system that cannot exchange names
    return Rename(aside, path);
  }
  fs::remove_all(aside, error);
  if (!error) return Ok();
  return Error(ErrorCode::kIo, "cannot remove: {}: {}", aside, error.message());
}

}  // namespace strata
