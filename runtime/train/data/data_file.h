#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace strata {

/// A file of training data, read piece by piece. Nothing is mapped: a file that becomes shorter
/// while it is in use is an error of the next read, not a signal.
class DataFile {
 public:
  /// The content of a pipe is kept in memory. Without `keep_open` the file is opened for each read,
  /// as one of more than a process may have open. Errors: as `ReadFile`.
  static Result<DataFile> Open(const std::string& path, bool keep_open = true);
  DataFile(DataFile&& other) noexcept;
  DataFile& operator=(DataFile&& other) noexcept;
  ~DataFile();

  const std::string& path() const { return path_; }
  /// Bytes, when the file was opened.
  int64_t size() const { return size_; }

  /// The bytes from `offset` on. REQUIRES: they are below size(). Errors: the file is shorter now.
  Status Read(int64_t offset, std::span<std::byte> out) const;
  /// The same of `[begin, end)` as text.
  Result<std::string> ReadText(int64_t begin, int64_t end) const;
  /// Calls `use(offset, bytes)` for the bytes of `[begin, end)`, a piece at a time.
  Status ForEachPiece(int64_t begin, int64_t end,
                      const std::function<Status(int64_t, std::span<const std::byte>)>& use) const;

  /// Size and hash of `[begin, end)`, of more than 64 MiB of samples: ContentOf of those bytes.
  Result<std::string> Content(int64_t begin, int64_t end) const;

 private:
  DataFile() = default;
  Status ReadFrom(int descriptor, int64_t offset, std::span<std::byte> out) const;

  std::string path_;
  int64_t size_ = 0;
  int descriptor_ = -1;              // -1: opened for each read
  std::optional<std::string> text_;  // of a pipe
};

/// More files than this are not kept open.
inline constexpr size_t kMaxOpenDataFiles = 256;

/// The files that the paths of a configuration name: a folder stands for those in it whose name
/// ends as one of `endings`, by name; hidden ones are left out. Errors: a folder without one.
Result<std::vector<std::string>> DataPaths(std::span<const std::string> paths,
                                           std::span<const std::string_view> endings);

}  // namespace strata
