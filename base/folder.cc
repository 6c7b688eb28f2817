#include "base/folder.h"

#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

Error IoError(std::string_view what, const std::string& path, const std::error_code& error,
              std::string_view advice) {
  return Error(ErrorCode::kIo, "{}: {}: {}: {}", what, path, error.message(), advice);
}

constexpr const char* kAside = ".partial";

/// True when the folder holds nothing, or only what a killed writer left.
bool IsEmpty(const std::string& path, std::error_code& error) {
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.path().filename() != kAside) return false;
  }
  return true;
}

}  // namespace

Result<AtomicFolder> AtomicFolder::Create(std::string path) {
  while (path.size() > 1 && path.ends_with('/'))
    path.pop_back();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  const bool exists = fs::exists(status);
  error.clear();
  if (exists && !fs::is_directory(status)) {
    return Error("not a folder: {}: give the name of a new folder", path);
  }
  if (exists && !IsEmpty(path, error)) {
    return Error("folder is not empty: {}: give a new one, or remove what is in it", path);
  }
  if (error) return IoError("cannot read folder", path, error, "give another one");
  std::string aside = fmt::format("{}{}{}", path, exists ? "/" : "", kAside);
  fs::remove_all(aside, error);  // of one that was killed
  const InterruptsHeld held;
  if (!fs::create_directory(aside, error) || error) {
    return IoError("cannot create folder", path, error, "is its parent there and writable?");
  }
  return AtomicFolder(std::move(path), TemporaryPath(std::move(aside)), exists);
}

Result<std::string> AtomicFolder::PathOf(std::string_view name) const {
  const fs::path path = fs::path(aside_.path()) / name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return IoError("cannot create folder", path_, error, "is there space on the disk?");
  return path.string();
}

Status AtomicFolder::Write(std::string_view name, std::string_view bytes) const {
  STRATA_TRY(const std::string path, PathOf(name));
  return WriteFile(path, bytes);
}

Status AtomicFolder::Commit() {
  std::error_code error;
  if (!exists_) {
    fs::rename(aside_.path(), path_, error);
    if (error) return IoError("cannot name folder", path_, error, "did it appear meanwhile?");
    aside_.Keep();
    return Ok();
  }
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(aside_.path(), error))
    entries.push_back(entry.path());
  for (const fs::path& entry : entries) {
    if (!error) fs::rename(entry, fs::path(path_) / entry.filename(), error);
  }
  if (error) return IoError("cannot fill folder", path_, error, "is it writable?");
  aside_.Remove();
  return Ok();
}

}  // namespace strata
