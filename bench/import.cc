#include <cstdlib>
#include <filesystem>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "bench/bench.h"
#include "bench/log.h"
#include "cli/core/flags.h"
#include "ir/fx/fx.h"

namespace strata::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kImportRuns = 5;
// Gates: docs/logs.md.
constexpr double kMaxCpuRatio = 1.0 / 3, kMaxPeakMb = 300, kMaxSizeRatio = 1.0 / 20;
constexpr double kMinParseMbPerS = 150, kMinDistinctMbPerS = 600, kMaxTrainerMs = 500;

std::string_view Verdict(bool met) {
  return met ? "met" : "missed";
}

double Megabytes(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<double>(size) / 1e6;
}

/// A temporary folder, removed by the destructor.
class WorkFolder {
 public:
  explicit WorkFolder(const std::string& parent)
      : path_((fs::path(parent) / fmt::format("strata_bench_{}", ::getpid())).string()) {
    fs::create_directories(path_);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string operator/(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

 private:
  std::string path_;
};

struct ImportOptions {
  int64_t megabytes = 1000;
  std::string logs, folder, tlparse = ".venv/bin/tlparse";
};

void PrintCost(std::string_view what, const ProgramCost& cost) {
  fmt::print("  {:<20} {:>7.2f} s processor time {:>7.2f} s elapsed {:>8.1f} MB peak\n", what,
             cost.cpu_s, cost.wall_s, cost.peak_mb);
}

class ImportBench {
 public:
  ImportBench(const ImportOptions& options, std::vector<std::string> logs)
      : options_(options), logs_(std::move(logs)), work_(options.folder) {}

  Status Run() {
    STRATA_RETURN_IF_ERROR(MeasureParser());
    STRATA_RETURN_IF_ERROR(MeasureTrainerLog());
    STRATA_RETURN_IF_ERROR(MeasureDistinctLog());
    for (const int64_t part : {4, 2, 1})
      STRATA_RETURN_IF_ERROR(MeasureLog(options_.megabytes / part));
    return MeasureRanks();
  }

 private:
  std::vector<std::string> ImportWords(const std::string& log, int threads = 0) const {
    return {"/proc/self/exe",       "import", log, "-o", work_ / "t.strata", "--threads",
            std::to_string(threads)};
  }

  ProgramCost RunTlparse(const std::string& log) const {
    const std::string out = work_ / "tl_out";
    ProgramCost cost =
        RunProgram({options_.tlparse, log, "--no-browser", "--overwrite", "-o", out});
    fs::remove_all(out);
    return cost;
  }

  static Status MeasureParser() {
    const std::string text = PrintFx(TransformerLikeGraph(7000)->graph(GraphId{0}));
    Status status;
    const Timing timing = Measure(kImportRuns, [&] {
      const auto document = ParseFx(text);
      if (!document) status = document.error();
    });
    const double speed = static_cast<double>(text.size()) / 1e3 / timing.median;
    fmt::print("FX text of 7000 nodes, {:.1f} MB: {:.0f} MB/s   limit {} MB/s: {}\n",
               static_cast<double>(text.size()) / 1e6, speed, kMinParseMbPerS,
               Verdict(speed >= kMinParseMbPerS));
    return status;
  }

  Status MeasureTrainerLog() {
    const std::string log = work_ / "trainer.log";
    STRATA_RETURN_IF_ERROR(WriteTrainerLog(log, 7000));
    const ProgramCost cost = RunProgram(ImportWords(log));
    if (cost.status != 0) return Error("import failed: {}", log);
    fmt::print(
        "log of a trainer, 7000 nodes, {:.1f} MB: {:.0f} ms processor time, {:.1f} MB "
        "peak, trace {:.2f} MB   limit {} ms: {}\n",
        Megabytes(log), cost.cpu_s * 1e3, cost.peak_mb, Megabytes(work_ / "t.strata"),
        kMaxTrainerMs, Verdict(cost.cpu_s * 1e3 <= kMaxTrainerMs));
    fs::remove(log);
    return Ok();
  }

  /// Every graph has to be read and stored: none repeats another.
  Status MeasureDistinctLog() {
    const std::string log = work_ / "distinct.log";
    STRATA_RETURN_IF_ERROR(WriteDistinctLog(log, options_.megabytes * 100'000));
    const ProgramCost ours = RunProgram(ImportWords(log, 1));
    if (ours.status != 0) return Error("import failed: {}", log);
    const ProgramCost theirs = RunTlparse(log);
    const double speed = Megabytes(log) / ours.cpu_s;
    const bool is_third = theirs.status == 0 && ours.cpu_s <= kMaxCpuRatio * theirs.cpu_s;
    fmt::print(
        "log of graphs, all distinct, {:.0f} MB: {:.0f} MB/s, processor time of tlparse's {}   "
        "limit {} MB/s or 1/3: {}\n",
        Megabytes(log), speed,
        theirs.status == 0 ? fmt::format("{:.2f}", ours.cpu_s / theirs.cpu_s) : "unknown",
        kMinDistinctMbPerS, Verdict(speed >= kMinDistinctMbPerS || is_third));
    fs::remove(log);
    return Ok();
  }

  Status MeasureLog(int64_t megabytes) {
    const std::string log = work_ / "large.log";
    STRATA_RETURN_IF_ERROR(WriteLargeLog(log, megabytes * 1'000'000, 0, logs_));
    fmt::print("\nlog of {:.0f} MB\n", Megabytes(log));
    const ProgramCost ours = RunProgram(ImportWords(log));
    if (ours.status != 0) return Error("import failed: {}", log);
    PrintCost("strata", ours);
    const ProgramCost theirs = RunTlparse(log);
    if (theirs.status == 0) {
      PrintCost("tlparse", theirs);
      const double ratio = ours.cpu_s / theirs.cpu_s;
      fmt::print("  processor time of tlparse's  1/{:.1f}   limit 1/3: {}\n", 1 / ratio,
                 Verdict(ratio <= kMaxCpuRatio));
    } else {
      fmt::print("  tlparse: {}: not there or failed; --tlparse names it\n", options_.tlparse);
    }
    const double size = Megabytes(work_ / "t.strata") / Megabytes(log);
    fmt::print("  peak memory  {:.0f} MB   limit {} MB: {}\n", ours.peak_mb, kMaxPeakMb,
               Verdict(ours.peak_mb <= kMaxPeakMb));
    fmt::print("  trace  {:.1f} MB, 1/{:.0f} of the log   limit 1/20: {}\n",
               Megabytes(work_ / "t.strata"), 1 / size, Verdict(size <= kMaxSizeRatio));
    fs::remove(log);
    return Ok();
  }

  /// Two ranks, read by one thread and by as many as there are.
  Status MeasureRanks() {
    const std::string folder = work_ / "ranks";
    fs::create_directories(folder);
    for (const int rank : {0, 1}) {
      const std::string log = fmt::format("{}/dedicated_log_torch_trace_rank_{}.log", folder, rank);
      STRATA_RETURN_IF_ERROR(WriteLargeLog(log, options_.megabytes * 250'000, rank, logs_));
    }
    fmt::print("\ntwo ranks of {} MB\n", options_.megabytes / 4);
    PrintCost("one thread", RunProgram(ImportWords(folder, 1)));
    STRATA_TRY(const std::string alone, ReadFile(work_ / "t.strata"));
    PrintCost("a thread per rank", RunProgram(ImportWords(folder)));
    STRATA_TRY(const std::string together, ReadFile(work_ / "t.strata"));
    fmt::print("  both traces are equal: {}\n", alone == together ? "yes" : "no");
    return Ok();
  }

  const ImportOptions& options_;
  std::vector<std::string> logs_;
  WorkFolder work_;
};

}  // namespace

Result<Exit> BenchImport(Args args) {
  ImportOptions options;
  options.logs = "tests/data/logs";
  options.folder = fs::temp_directory_path().string();
  Flags flags("bench import", "measures the import of logs, beside tlparse");
  flags.Option("--size", "MB", &options.megabytes, "of the largest log");
  flags.Option("--logs", "DIR", &options.logs, "real logs of which the large ones are made");
  flags.Option("--dir", "DIR", &options.folder, "where files are written and removed again");
  flags.Option("--tlparse", "FILE", &options.tlparse, "the program to compare with");
  flags.Example("strata bench import");
  flags.Example("strata bench import --size 100");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;
  if (options.megabytes < 4) return Error("too small: --size: give at least 4");
  STRATA_TRY(std::vector<std::string> logs, ReadLogsBelow(options.logs));
  STRATA_RETURN_IF_ERROR(ImportBench(options, std::move(logs)).Run());
  return Exit::kOk;
}

}  // namespace strata::cli
