#include "tlparse-export/torch_trace/import/follow.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "ir/fx/fx.h"
#include "tlparse-export/torch_trace/import/input_files.h"

namespace strata {
namespace {

constexpr int kPollMs = 100;
// So long crowds are gathered while a log grows slowly.
constexpr int kGatherMs = 3000;

/// Reads what a file has got since it was last looked at.
class Tail {
 public:
  explicit Tail(std::string path) : path_(std::move(path)), buffer_(kBufferBytes, '\0') {}
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;
  ~Tail() { Close(); }

  enum class Event : uint8_t { kNothing, kBytes, kRestart };

  /// Bytes are in `bytes()` until the next call.
  Result<Event> Look() {
    if (descriptor_ < 0 && !Open()) return Event::kNothing;
    struct stat info{};
    if (::fstat(descriptor_, &info) == 0 && info.st_size < offset_) {
      offset_ = 0;
      return Event::kRestart;
    }
    const ssize_t got = ::pread(descriptor_, buffer_.data(), buffer_.size(), offset_);
    if (got < 0 && errno != EINTR) return ReadError(path_, errno);
    if (got > 0) {
      const bool is_first = offset_ == 0;
      offset_ += got;
      size_ = static_cast<size_t>(got);
      if (is_first && IsCompressed()) {
        return Error(ErrorCode::kUnsupported,
                     "compressed: {}: such a log cannot be followed; import it when it ended",
                     path_);
      }
      if (is_first && LooksLikeFxGraph(bytes())) {
        return Error(ErrorCode::kUnsupported,
                     "a graph: {}: only logs can be followed; import it without --follow", path_);
      }
      return Event::kBytes;
    }
    if (!IsReplaced(info)) return Event::kNothing;
    // The old file was read to its end.
    Close();
    offset_ = 0;
    return Event::kRestart;
  }

  std::string_view bytes() const { return std::string_view(buffer_).substr(0, size_); }
  const std::string& path() const { return path_; }

 private:
  static constexpr size_t kBufferBytes = size_t{128} << 10;

  bool Open() {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return descriptor_ >= 0;
  }
  void Close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  bool IsReplaced(const struct stat& opened) const {
    struct stat named{};
    if (::stat(path_.c_str(), &named) != 0) return false;
    return named.st_ino != opened.st_ino || named.st_dev != opened.st_dev;
  }
  bool IsCompressed() const {
    return bytes().starts_with("\x1f\x8b") || bytes().starts_with("\x28\xb5\x2f\xfd");
  }

  std::string path_, buffer_;
  size_t size_ = 0;
  int descriptor_ = -1;
  off_t offset_ = 0;
};

class Follower {
 public:
  Follower(const std::vector<std::string>& words, const FollowOptions& options, TraceWriter& trace,
           ImportSummary& summary)
      : words_(words),
        options_(options),
        summary_(summary),
        importer_(options.import, trace, summary) {}

  Status Run() {
    int idle_ms = 0;
    while (true) {
      FindLogs();
      bool is_idle = true;
      for (const auto& log : logs_) {
        STRATA_TRY(const bool came, Step(*log));
        is_idle = is_idle && !came;
      }
      // A file that grows faster than it is read leaves no time for waiting, but for the signal.
      const int wait_ms = is_idle ? kPollMs : 0;
      idle_ms = is_idle ? idle_ms + wait_ms : 0;
      if (options_.wait(wait_ms)) break;
      if (options_.idle_s && idle_ms >= *options_.idle_s * 1000) break;
    }
    for (const auto& log : logs_) {
      STRATA_RETURN_IF_ERROR(log->splitter.Finish());
      STRATA_RETURN_IF_ERROR(importer_.Take(log->number, log->splitter.Take()));
      STRATA_RETURN_IF_ERROR(importer_.FinishLog(log->number));
    }
    if (summary_.records == 0) {
      return Error("nothing to import: {}: no records came", fmt::join(words_, ", "));
    }
    return importer_.Finish();
  }

 private:
  struct Log {
    Log(const std::string& path, const SplitOptions& options, ParsedTexts& texts, size_t log)
        : tail(path), splitter(path, options, texts), number(log) {}
    Tail tail;
    LogSplitter splitter;
    size_t number;
    int gathered_ms = 0;
    bool is_settled = true;  // nothing is held back
  };

  void FindLogs() {
    std::error_code error;
    for (const std::string& word : words_) {
      if (!std::filesystem::is_directory(word, error)) {
        Add(word);
        continue;
      }
      for (const std::string& file : LogsOfFolder(word))
        Add(file);
    }
  }

  void Add(const std::string& path) {
    const auto is_path = [&](const auto& log) { return log->tail.path() == path; };
    if (std::ranges::any_of(logs_, is_path)) return;
    const SplitOptions split{.strict = options_.import.strict};
    logs_.push_back(std::make_unique<Log>(path, split, texts_, importer_.AddLog(path)));
  }

  /// True when something came.
  Result<bool> Step(Log& log) {
    STRATA_TRY(const Tail::Event event, log.tail.Look());
    switch (event) {
      case Tail::Event::kBytes:
        STRATA_RETURN_IF_ERROR(log.splitter.Feed(log.tail.bytes()));
        log.is_settled = false;
        break;
      case Tail::Event::kRestart:
        STRATA_RETURN_IF_ERROR(log.splitter.Restart());
        break;
      case Tail::Event::kNothing:
        if (log.is_settled) return false;
        log.gathered_ms += kPollMs;
        log.is_settled = log.gathered_ms >= kGatherMs;
        STRATA_RETURN_IF_ERROR(log.splitter.Pause(log.is_settled));
        if (log.is_settled) log.gathered_ms = 0;
        break;
    }
    STRATA_RETURN_IF_ERROR(importer_.Take(log.number, log.splitter.Take()));
    if (log.is_settled) STRATA_RETURN_IF_ERROR(importer_.Flush());
    return event != Tail::Event::kNothing;
  }

  const std::vector<std::string>& words_;
  const FollowOptions& options_;
  ImportSummary& summary_;
  ParsedTexts texts_;
  LogImporter importer_;
  std::vector<std::unique_ptr<Log>> logs_;
};

}  // namespace

Status FollowLogs(const std::vector<std::string>& words, const FollowOptions& options,
                  TraceWriter& trace, ImportSummary& summary) {
  return Follower(words, options, trace, summary).Run();
}

}  // namespace strata
