#include "base/file.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace strata {
namespace {

constexpr size_t kReadBytes = size_t{1} << 18;

std::string Folder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// A full disk and a file size limit both mean: the bytes do not fit here.
Error WriteError(const std::string& path, int error) {
  if (error == ENOSPC || error == EDQUOT) {
    return Error(ErrorCode::kIo, "disk full: {}: free some space or write to another disk", path);
  }
  if (error == EFBIG) {
    return Error(ErrorCode::kIo, "file size limit reached: {}: raise the limit (ulimit -f)", path);
  }
  if (error == ENAMETOOLONG) {
    return Error(ErrorCode::kIo, "name is too long: {}: give a shorter one", path);
  }
  return Error(ErrorCode::kIo, "cannot write: {}: {}, choose another place", path,
               std::strerror(error));
}

/// A variable of a script that is not set.
Error NoNameError() {
  return Error("empty file name: '': give a name");
}

Error CreateError(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Error(ErrorCode::kIo, "cannot write: {}: no folder '{}', create it first", path,
                   Folder(path));
    case EACCES:
    case EPERM:
    case EROFS:
      return Error(ErrorCode::kIo, "cannot write: {}: {}, choose a place that you may write to",
                   path, error == EROFS ? "read-only file system" : "permission denied");
    default:
      return WriteError(path, error);
  }
}

Error IsDirectoryError(const std::string& path) {
  return Error(ErrorCode::kIo, "is a directory: {}: give a file", path);
}

/// Closes an open file at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int get() const { return number_; }

 private:
  int number_;
};

Result<Descriptor> OpenForReading(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return ReadError(path, errno);
  struct stat info{};
  if (::fstat(file.get(), &info) == 0 && S_ISDIR(info.st_mode)) return IsDirectoryError(path);
  return file;
}

/// 0 for what has no size beforehand (pipes, /proc).
size_t SizeHint(int descriptor) {
  struct stat info{};
  const bool has_size = ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
  return has_size ? static_cast<size_t>(info.st_size) : 0;
}

Result<std::string> ReadAll(int descriptor, const std::string& path, size_t size_hint) {
  std::string bytes;
  bytes.reserve(size_hint + kReadBytes);
  size_t used = 0;
  while (true) {
    bytes.resize(used + kReadBytes);
    const ssize_t got = ::read(descriptor, bytes.data() + used, kReadBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadError(path, errno);
    used += static_cast<size_t>(got);
    if (got == 0) break;
  }
  bytes.resize(used);
  return bytes;
}

/// Devices and pipes keep their names. A descriptor's name under /proc may lead to a regular file,
/// which its opener, not we, has named.
bool IsWrittenThrough(const std::string& path, const struct stat& info) {
  return !S_ISREG(info.st_mode) || path.starts_with("/dev/") || path.starts_with("/proc/");
}

std::string FollowLinks(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) != nullptr ? std::string(resolved) : path;
}

Status WriteAll(int descriptor, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return WriteError(path, errno);
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return Ok();
}

bool IsSameFile(int descriptor, const std::string& path) {
  struct stat opened{};
  struct stat named{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

Error BeingWritten(const std::string& path) {
  return Error(ErrorCode::kIo,
               "cannot write: {}: it is being written already, wait or give another name", path);
}

/// An error when the file is held by a FileLock.
Status CheckUnlocked(const std::string& target, const std::string& path) {
  const Descriptor file(::open(target.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return Ok();
  if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return BeingWritten(path);
  }
  return Ok();
}

/// Opens and locks a partial file, without a change to its bytes: they may be another process's.
Result<int> OpenPartial(const std::string& partial_path, const std::string& path) {
  while (true) {
    const int descriptor =
        ::open(partial_path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) return CreateError(path, errno);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor);
      return BeingWritten(path);
    }
    if (IsSameFile(descriptor, partial_path)) return descriptor;
    // Its writer committed between our open and our lock: what we hold is the finished file.
    ::close(descriptor);
  }
}

/// The rename itself must survive a power cut too. Some file systems cannot sync a folder; the file
/// is complete nevertheless.
void SyncFolder(const std::string& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

Error ReadError(const std::string& path, int error) {
  if (path.empty()) return NoNameError();
  if (error == ENOENT || error == ENOTDIR) {
    return Error(ErrorCode::kNotFound, "no such file: {}: check the path", path);
  }
  if (error == ENAMETOOLONG) {
    return Error(ErrorCode::kNotFound, "no such file: {}: the name is too long for one", path);
  }
  return Error(ErrorCode::kIo, "cannot read: {}: {}, give a file that you may read", path,
               std::strerror(error));
}

Result<std::string> ReadFile(const std::string& path) {
  if (path == "-") return ReadAll(STDIN_FILENO, "standard input", 0);
  STRATA_TRY(const Descriptor file, OpenForReading(path));
  return ReadAll(file.get(), path, SizeHint(file.get()));
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  MappedFile mapped;
  const auto own = [&mapped](std::string text) {
    const auto owner = std::make_shared<const std::string>(std::move(text));
    mapped.owner_ = owner;
    mapped.bytes_ = std::as_bytes(std::span(*owner));
  };
  if (path == "-") {
    STRATA_TRY(std::string text, ReadFile(path));
    own(std::move(text));
    return mapped;
  }
  STRATA_TRY(const Descriptor file, OpenForReading(path));
  const size_t size = SizeHint(file.get());
  void* address =
      size == 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) {
    // From this descriptor: the writer of a pipe may be gone when it is opened again.
    STRATA_TRY(std::string text, ReadAll(file.get(), path, size));
    own(std::move(text));
    return mapped;
  }
  mapped.owner_ = std::shared_ptr<const void>(
      address, [size](const void* start) { ::munmap(const_cast<void*>(start), size); });
  mapped.bytes_ = {static_cast<const std::byte*>(address), size};
  return mapped;
}

Result<FileLock> FileLock::Take(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return ReadError(path, errno);
  FileLock lock(descriptor);
  // Who only asks whether a file is being written holds a shared lock meanwhile.
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    if (::flock(descriptor, LOCK_SH | LOCK_NB) != 0) return BeingWritten(path);
    ::flock(descriptor, LOCK_UN);
    std::this_thread::yield();
  }
  return lock;
}

bool IsBeingWritten(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file.get() < 0 || ::flock(file.get(), LOCK_SH | LOCK_NB) != 0;
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<AtomicFile> AtomicFile::Create(std::string path) {
  if (path.empty()) return NoNameError();
  AtomicFile file;
  file.path_ = std::move(path);
  if (file.path_ == "-") {
    file.path_ = "standard output";
    file.descriptor_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (file.descriptor_ < 0) return WriteError(file.path_, errno);
    return file;
  }

  mode_t mode = 0;
  struct stat info{};
  if (::stat(file.path_.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return IsDirectoryError(file.path_);
    if (::access(file.path_.c_str(), W_OK) != 0) return CreateError(file.path_, errno);
    if (IsWrittenThrough(file.path_, info)) {
      file.descriptor_ = ::open(file.path_.c_str(), O_WRONLY | O_CLOEXEC);
      if (file.descriptor_ < 0) return CreateError(file.path_, errno);
      return file;
    }
    mode = info.st_mode & 07777;
  }

  file.target_ = FollowLinks(file.path_);
  STRATA_RETURN_IF_ERROR(CheckUnlocked(file.target_, file.path_));
  const std::string partial_path = file.target_ + ".partial";
  const InterruptsHeld held;
  STRATA_TRY(file.descriptor_, OpenPartial(partial_path, file.path_));
  file.partial_ = TemporaryPath(partial_path);
  if (::ftruncate(file.descriptor_, 0) != 0) return WriteError(file.path_, errno);
  if (mode != 0) ::fchmod(file.descriptor_, mode);
  return file;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      partial_(std::move(other.partial_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  if (this != &other) {
    Discard();
    path_ = std::move(other.path_);
    target_ = std::move(other.target_);
    partial_ = std::move(other.partial_);
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

AtomicFile::~AtomicFile() {
  Discard();
}

void AtomicFile::Discard() {
  partial_.Remove();
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Status AtomicFile::Append(std::string_view bytes) {
  STRATA_CHECK(descriptor_ >= 0, "{}: written after its end", path_);
  Status status = WriteAll(descriptor_, bytes, path_);
  if (!status) Discard();
  return status;
}

Status AtomicFile::Commit() {
  STRATA_RETURN_IF_ERROR(GiveName());
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0 && errno != EINTR) return WriteError(path_, errno);
  return Ok();
}

Result<FileLock> AtomicFile::CommitAndLock() {
  STRATA_RETURN_IF_ERROR(GiveName());
  return FileLock(std::exchange(descriptor_, -1));
}

Status AtomicFile::GiveName() {
  STRATA_CHECK(descriptor_ >= 0, "{}: committed after its end", path_);
  // Some file systems (NFS, quotas) report only here that the bytes did not fit.
  if (!partial_.empty() && ::fsync(descriptor_) != 0) {
    const int error = errno;
    Discard();
    return WriteError(path_, error);
  }
  if (!partial_.empty()) {
    if (Status free = CheckUnlocked(target_, path_); !free) {
      Discard();
      return free;
    }
    if (::rename(partial_path().c_str(), target_.c_str()) != 0) {
      const int error = errno;
      Discard();
      return CreateError(path_, error);
    }
    partial_.Keep();
    SyncFolder(Folder(target_));
  }
  return Ok();
}

Status WriteFile(const std::string& path, std::string_view bytes) {
  STRATA_TRY(AtomicFile file, AtomicFile::Create(path));
  STRATA_RETURN_IF_ERROR(file.Append(bytes));
  return file.Commit();
}

}  // namespace strata
