#include "runtime/train/data/data_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "runtime/train/data/traits.h"

namespace strata {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;

}  // namespace

Result<DataFile> DataFile::Open(const std::string& path, bool keep_open) {
  DataFile file;
  file.path_ = path;
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    STRATA_TRY(file.text_, ReadFile(path));
    file.size_ = std::ssize(*file.text_);
    return file;
  }
  file.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.descriptor_ < 0 || ::fstat(file.descriptor_, &info) != 0) return ReadError(path, errno);
  file.size_ = info.st_size;
  if (!keep_open) ::close(std::exchange(file.descriptor_, -1));
  return file;
}

DataFile::DataFile(DataFile&& other) noexcept
    : path_(std::move(other.path_)),
      size_(other.size_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      text_(std::move(other.text_)) {}

DataFile& DataFile::operator=(DataFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(size_, other.size_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(text_, other.text_);
  return *this;
}

DataFile::~DataFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status DataFile::Read(int64_t offset, std::span<std::byte> out) const {
  if (text_) {
    const auto bytes = std::as_bytes(std::span(*text_));
    std::ranges::copy(bytes.subspan(static_cast<size_t>(offset), out.size()), out.begin());
    return Ok();
  }
  if (descriptor_ >= 0) return ReadFrom(descriptor_, offset, out);
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return ReadError(path_, errno);
  Status read = ReadFrom(descriptor, offset, out);
  ::close(descriptor);
  return read;
}

Status DataFile::ReadFrom(int descriptor, int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = ::pread(descriptor, out.data(), out.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ReadError(path_, errno);
    if (count == 0) {
      return Error(ErrorCode::kIo,
                   "data became shorter while they are in use: {}: {} bytes are there no more; "
                   "restore the file, and continue from a checkpoint with --resume",
                   path_, size_ - offset);
    }
    offset += count;
    out = out.subspan(static_cast<size_t>(count));
  }
  return Ok();
}

Result<std::string> DataFile::ReadText(int64_t begin, int64_t end) const {
  std::string text(static_cast<size_t>(end - begin), '\0');
  STRATA_RETURN_IF_ERROR(Read(begin, std::as_writable_bytes(std::span(text))));
  return text;
}

Status DataFile::ForEachPiece(
    int64_t begin, int64_t end,
    const std::function<Status(int64_t, std::span<const std::byte>)>& use) const {
  std::vector<std::byte> piece;
  for (; begin < end; begin += std::ssize(piece)) {
    piece.resize(static_cast<size_t>(std::min(kPiece, end - begin)));
    STRATA_RETURN_IF_ERROR(Read(begin, piece));
    STRATA_RETURN_IF_ERROR(use(begin, piece));
  }
  return Ok();
}

Result<std::string> DataFile::Content(int64_t begin, int64_t end) const {
  SampledHasher hasher(static_cast<size_t>(end - begin));
  std::vector<std::byte> sample;
  while (const auto range = hasher.Next()) {
    sample.resize(range->second);
    STRATA_RETURN_IF_ERROR(Read(begin + static_cast<int64_t>(range->first), sample));
    hasher.Add(sample);
  }
  return hasher.Content();
}

Result<std::vector<std::string>> DataPaths(std::span<const std::string> paths,
                                           std::span<const std::string_view> endings) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(path, error)) {
      const std::string name = entry.path().filename().string();
      const bool is_data = std::ranges::any_of(
          endings, [&](std::string_view ending) { return name.ends_with(ending); });
      if (is_data && !name.starts_with('.') && entry.is_regular_file()) {
        found.push_back(entry.path().string());
      }
    }
    if (found.empty()) {
      return Error(ErrorCode::kNotFound, "no data in the folder: {}: give one with files *{}", path,
                   fmt::join(endings, " or *"));
    }
    std::ranges::sort(found);
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

}  // namespace strata
