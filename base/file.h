#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/interrupt.h"
#include "base/result.h"

namespace strata {

/// The Error of a file that cannot be opened or read, for `errno`: kNotFound or kIo.
Error ReadError(const std::string& path, int error);

/// The bytes of a whole file; the path `-` is standard input.
/// Errors: kNotFound for a missing file, kIo for a directory and for what the system refuses.
Result<std::string> ReadFile(const std::string& path);

/// A file's bytes without a copy where the system can map them (a pipe is read).
///
/// REQUIRES: the file is not truncated meanwhile; `AtomicFile` never does that.
class MappedFile {
 public:
  /// Errors: as `ReadFile`.
  static Result<MappedFile> Open(const std::string& path);

  /// Valid as long as this object or one moved from it lives.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  MappedFile() = default;

  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

/// Prevents other writers of a file for its lifetime; see AtomicFile.
class FileLock {
 public:
  /// Locks nothing.
  FileLock() = default;
  /// Locks a file that exists. Errors: there is none, or another writer holds it.
  static Result<FileLock> Take(const std::string& path);
  /// `descriptor` is of a locked file, and closed in the end.
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  int descriptor_ = -1;
};

/// Whether a FileLock holds the file; also true where the file system has no such locks.
bool IsBeingWritten(const std::string& path);

/// An output file that appears under its name only when it is complete.
///
/// Bytes go to `<path>.partial` in the same folder; `Commit` makes them durable and renames. A file
/// that is destroyed without a commit leaves nothing, and an older file of the name as it was. What
/// is not a regular file (a device, a pipe, the path `-` for standard output) cannot be renamed
/// onto and is written straight through.
///
/// Every error names the path that the user gave and says what to do. After a failed `Append` the
/// partial file is gone already, so that a full disk gets its space back at once.
///
/// A file size limit (`ulimit -f`) is an Error only in a program that ignores SIGXFSZ.
class AtomicFile {
 public:
  /// Errors: the folder is missing or not writable, the path is a directory, the output is being
  /// written already.
  static Result<AtomicFile> Create(std::string path);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  /// Hands the bytes to the system before it returns: who reads the partial file sees them.
  Status Append(std::string_view bytes);

  /// Makes the file durable and gives it its name. REQUIRES: no commit and no failure before.
  /// Errors also: the file of that name is locked.
  Status Commit();
  /// The same for a file that goes on to be written under its name: `Create` and `Commit` of that
  /// name, also in other processes, are errors until the lock is gone.
  Result<FileLock> CommitAndLock();

  /// The path given to `Create`.
  const std::string& path() const { return path_; }
  /// That path with symbolic links followed.
  const std::string& target_path() const { return target_; }
  /// Where the bytes are until `Commit`, for writers that need a name; empty when they are written
  /// straight through.
  const std::string& partial_path() const { return partial_.path(); }

 private:
  AtomicFile() = default;
  /// Closes and removes what was written.
  void Discard();
  Status GiveName();

  std::string path_;       // as the user wrote it
  std::string target_;     // with symbolic links followed
  TemporaryPath partial_;  // empty: written straight through
  int descriptor_ = -1;
};

/// `Create`, one `Append`, `Commit`.
Status WriteFile(const std::string& path, std::string_view bytes);

}  // namespace strata
