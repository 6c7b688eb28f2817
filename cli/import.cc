#include "tlparse-export/torch_trace/import.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "ir/file.h"
#include "ir/fx/fx.h"
#include "store/trace.h"

namespace strata::cli {
namespace {

/// The files that a word of the command line means: itself, or the logs of a folder by name.
Result<std::vector<std::string>> FilesOf(const std::string& word) {
  std::error_code error;
  if (!std::filesystem::is_directory(word, error)) return std::vector<std::string>{word};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(word, error)) {
    if (entry.is_regular_file(error) && entry.path().extension() == ".log") {
      files.push_back(entry.path().string());
    }
  }
  if (files.empty()) return Error("no logs: {}: the folder has no file '*.log'", word);
  std::ranges::sort(files);
  return files;
}

Result<LogContent> ReadAny(const std::string& path, const LogOptions& options) {
  STRATA_TRY(const std::string text, ReadFile(path));
  if (!LooksLikeLog(text) && LooksLikeFxGraph(text)) {
    return LogOfFxText(text, path, std::filesystem::path(path).stem().string());
  }
  STRATA_TRY(LogContent log, ReadLog(text, path, options));
  if (log.num_records == 0) {
    return Error("nothing to import: {}: it is neither a log of TORCH_TRACE nor an FX graph", path);
  }
  return log;
}

}  // namespace

Result<Exit> RunImport(Args args) {
  std::vector<std::string> words;
  std::string output;
  bool strict = false;
  Flags flags("import", "reads logs that PyTorch wrote with TORCH_TRACE set, and FX texts");
  flags.Positionals("LOG", &words, 1, "a log, a folder of logs of several ranks, or an FX text");
  flags.Required("-o,--output", "T", &output, "the trace to write");
  flags.Switch("--strict", &strict, "stop at the first thing that cannot be read");
  flags.Example("strata import dedicated_log_torch_trace_rank_0_x1.log -o run.strata");
  flags.Example("TORCH_TRACE=logs python train.py && strata import logs -o run.strata");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  std::vector<LogContent> logs;
  int32_t world = 1;
  for (const std::string& word : words) {
    STRATA_TRY(const std::vector<std::string> files, FilesOf(word));
    for (const std::string& file : files) {
      STRATA_TRY(LogContent log, ReadAny(file, {.strict = strict}));
      for (const LogRun& run : log.runs)
        world = std::max(world, run.rank + 1);
      logs.push_back(std::move(log));
    }
  }

  ImportOptions options;
  options.strict = strict;
  options.world = world;
  options.command = fmt::format("strata import {} -o {}{}", fmt::join(words, " "), output,
                                strict ? " --strict" : "");
  STRATA_TRY(const std::unique_ptr<TraceWriter> trace,
             TraceWriter::Create(output, TraceWriter::Mode::kAside));
  ImportSummary summary;
  for (const LogContent& log : logs)
    STRATA_RETURN_IF_ERROR(ImportLog(log, options, *trace, summary));
  STRATA_RETURN_IF_ERROR(trace->Finish());

  for (const std::string& warning : summary.warnings)
    Warn(warning);
  const auto untold = summary.num_warnings - static_cast<int64_t>(summary.warnings.size());
  if (untold > 0) Warn(fmt::format("and {} more of these", untold));
  fmt::print(stderr, "{}: {} records, {} graphs in {} snapshots, {} passes ({} changed nothing)\n",
             output, summary.records, summary.graphs, summary.snapshots, summary.passes,
             summary.unchanged_passes);
  return Exit::kOk;
}

}  // namespace strata::cli
