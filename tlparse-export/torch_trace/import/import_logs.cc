#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "ir/fx/fx.h"
#include "ir/fx/known_lines.h"
#include "ir/fx/program.h"
#include "tlparse-export/torch_trace/import/import.h"
#include "tlparse-export/torch_trace/read/pasted_text.h"

namespace strata {
namespace {

// Logs that are read side by side. More would only take memory; the number of cores must not
// matter, as the order in which records are stored depends on it.
constexpr size_t kSideBySide = 4;
constexpr size_t kMaxFxBytes = size_t{2} << 30;

/// Reads one input batch by batch.
class BatchReader {
 public:
  BatchReader(LogInputs& inputs, size_t index, bool strict, ParsedTexts& texts)
      : inputs_(inputs), index_(index), strict_(strict), texts_(texts) {}

  /// None: there are no more.
  Result<std::optional<LogBatch>> Next() {
    if (is_finished_) return std::optional<LogBatch>();
    if (!splitter_) STRATA_RETURN_IF_ERROR(Begin());
    STRATA_TRY(std::string_view piece, input_.bytes->Read());
    if (is_text_) {
      STRATA_TRY(std::string rest, ReadRest(piece));
      STRATA_RETURN_IF_ERROR(LooksLikeFxProgram(rest) ? AddFxProgram(rest)
                                                      : AddPasted(std::move(rest)));
      piece = {};
    }
    while (!piece.empty()) {
      STRATA_RETURN_IF_ERROR(splitter_->Feed(piece));
      // Runs begin in order of logs: the first batch of each has its first record.
      if (splitter_->has_runs()) return std::optional(Taken());
      STRATA_TRY(piece, input_.bytes->Read());
    }
    is_finished_ = true;
    STRATA_RETURN_IF_ERROR(splitter_->Finish());
    LogBatch last = Taken();
    input_.bytes.reset();
    return std::optional(std::move(last));
  }

  const std::string& path() const { return input_.path; }

 private:
  LogBatch Taken() {
    LogBatch batch = splitter_->Take();
    const ByteSource::Position at = input_.bytes->position();
    if (at.size > 0) batch.share = static_cast<double>(at.read) / static_cast<double>(at.size);
    return batch;
  }

  Status Begin() {
    STRATA_TRY(input_, inputs_.Open(index_));
    const SplitOptions options{.strict = strict_, .known_lines = &known_lines_};
    splitter_ = std::make_unique<LogSplitter>(input_.path, options, texts_);
    STRATA_TRY(const std::string_view head, input_.bytes->Peek());
    is_text_ = LooksPasted(head);
    return Ok();
  }

  /// A text that is read as a whole, from `piece` on.
  Result<std::string> ReadRest(std::string_view piece) {
    std::string text(piece);
    while (!piece.empty()) {
      STRATA_TRY(piece, input_.bytes->Read());
      text += piece;
      if (text.size() > kMaxFxBytes) {
        return Error(ErrorCode::kUnsupported, "too large: {}: a text of more than {} GiB",
                     input_.path, kMaxFxBytes >> 30);
      }
    }
    return text;
  }

  Status AddPasted(std::string pasted) {
    const std::string text = ReadPasted(std::move(pasted)).text;
    const bool is_graph = !LooksLikeLog(text) && LooksLikeFxGraph(text);
    return is_graph ? AddFxText(text) : splitter_->Feed(text);
  }

  /// Its graph, with the types that are inferred.
  Status AddFxProgram(std::string_view text) {
    FxOptions options;
    options.file = input_.path;
    options.strict = strict_;
    STRATA_TRY(const FxProgram program, ParseFxProgram(text, options));
    return AddFxText(PrintFx(program.document.graph()));
  }

  Status AddFxText(std::string_view text) {
    std::filesystem::path name = std::filesystem::path(input_.path).filename();
    // graph.txt.gz is a graph.
    while (name.has_extension())
      name = name.stem();
    return splitter_->AddFxText(text, name.string());
  }

  LogInputs& inputs_;
  size_t index_;
  bool strict_;
  ParsedTexts& texts_;
  LogInput input_;
  fx::KnownLines known_lines_;
  std::unique_ptr<LogSplitter> splitter_;
  bool is_text_ = false, is_finished_ = false;
};

/// A reader on a thread of its own, a few batches ahead.
class ReaderThread {
 public:
  explicit ReaderThread(BatchReader& reader) : thread_([this, &reader] { Run(reader); }) {}
  ReaderThread(const ReaderThread&) = delete;
  ReaderThread& operator=(const ReaderThread&) = delete;
  ~ReaderThread() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Result<std::optional<LogBatch>> Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty(); });
    Result<std::optional<LogBatch>> next = std::move(ready_.front());
    ready_.pop_front();
    changed_.notify_all();
    return next;
  }

 private:
  static constexpr size_t kAhead = 2;

  void Run(BatchReader& reader) {
    while (true) {
      Result<std::optional<LogBatch>> next = reader.Next();
      const bool is_last = !next || !*next;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_stopped_ || ready_.size() < kAhead; });
      if (is_stopped_) return;
      ready_.push_back(std::move(next));
      changed_.notify_all();
      if (is_last) return;
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Result<std::optional<LogBatch>>> ready_;
  bool is_stopped_ = false;
  std::thread thread_;  // last: it uses the others
};

class LogsImporter {
 public:
  LogsImporter(LogInputs& inputs, const ImportOptions& options, TraceWriter& trace,
               ImportSummary& summary)
      : inputs_(inputs), options_(options), summary_(summary), importer_(options, trace, summary) {}

  /// Takes a batch of each log in turn.
  Status Run() {
    while (true) {
      while (active_.size() < kSideBySide && opened_ < inputs_.size())
        Open();
      if (active_.empty()) break;
      for (size_t i = 0; i < active_.size();) {
        STRATA_TRY(const bool goes_on, Step(*active_[i]));
        if (goes_on) {
          ++i;
        } else {
          active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
    }
    if (summary_.records == 0) return NothingToImport();
    return importer_.Finish();
  }

 private:
  struct Active {
    BatchReader reader;
    std::unique_ptr<ReaderThread> thread;
    std::optional<size_t> log;
    int64_t records = 0;
    double share = 0;  // of it that is imported
  };

  void Open() {
    auto active = std::make_unique<Active>(
        Active{BatchReader(inputs_, opened_++, options_.strict, texts_), nullptr, {}, 0, 0});
    if (options_.threads != 1) active->thread = std::make_unique<ReaderThread>(active->reader);
    active_.push_back(std::move(active));
  }

  /// False: the log has ended.
  Result<bool> Step(Active& active) {
    STRATA_TRY(std::optional<LogBatch> batch,
               active.thread ? active.thread->Next() : active.reader.Next());
    if (!batch) {
      // A rank that logged nothing is none of the others' business.
      if (active.records == 0 && inputs_.size() > 1) {
        summary_.warnings.push_back(fmt::format("{}: nothing in it", active.reader.path()));
        ++summary_.num_warnings;
      }
      last_path_ = active.reader.path();
      if (active.log) STRATA_RETURN_IF_ERROR(importer_.FinishLog(*active.log));
      ++finished_;
      return false;
    }
    active.records += batch->num_records;
    if (!active.log) active.log = importer_.AddLog(active.reader.path());
    const double before = active.share, after = std::max(before, batch->share);
    STRATA_RETURN_IF_ERROR(
        importer_.Take(*active.log, *std::move(batch), [&](double share) -> Status {
          active.share = before + (after - before) * share;
          return Progress();
        }));
    return true;
  }

  Status Progress() const {
    if (!options_.on_progress) return Ok();
    auto done = static_cast<double>(finished_);
    for (const auto& active : active_)
      done += active->share;
    return options_.on_progress(std::min(1.0, done / static_cast<double>(inputs_.size())));
  }

  Error NothingToImport() {
    if (inputs_.size() > 1) {
      return Error("nothing to import: {}: its logs hold no records", inputs_.name());
    }
    // One line says it all.
    summary_.warnings.clear();
    summary_.num_warnings = 0;
    return Error("nothing to import: {}: it is neither a log of TORCH_TRACE nor an FX graph",
                 last_path_);
  }

  LogInputs& inputs_;
  const ImportOptions& options_;
  ImportSummary& summary_;
  ParsedTexts texts_;
  LogImporter importer_;
  std::deque<std::unique_ptr<Active>> active_;
  size_t opened_ = 0, finished_ = 0;
  std::string last_path_;
};

}  // namespace

Status ImportLogs(LogInputs& inputs, const ImportOptions& options, TraceWriter& trace,
                  ImportSummary& summary) {
  return LogsImporter(inputs, options, trace, summary).Run();
}

}  // namespace strata
