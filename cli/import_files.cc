#include "cli/import_files.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "cli/command.h"
#include "ir/file.h"
#include "ir/fx/fx.h"
#include "store/trace.h"
#include "tlparse-export/torch_trace/decompress.h"

namespace strata::cli {
namespace {

Result<LogContent> ReadAny(const std::string& path, const LogOptions& options) {
  STRATA_TRY(std::string bytes, ReadFile(path));
  STRATA_TRY(const std::string text, Decompress(std::move(bytes), path));
  if (!LooksLikeLog(text) && LooksLikeFxGraph(text)) {
    return LogOfFxText(text, path, std::filesystem::path(path).stem().string());
  }
  return ReadLog(text, path, options);
}

}  // namespace

Result<std::vector<std::string>> LogFilesOf(const std::string& word) {
  std::error_code error;
  if (!std::filesystem::is_directory(word, error)) return std::vector<std::string>{word};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(word, error)) {
    const std::string path = entry.path().string();
    const bool is_log =
        path.ends_with(".log") || path.ends_with(".log.gz") || path.ends_with(".log.zst");
    if (is_log && entry.is_regular_file(error)) files.push_back(path);
  }
  if (files.empty()) return Error("no logs: {}: the folder has no file '*.log'", word);
  std::ranges::sort(files);
  return files;
}

Result<ImportSummary> ImportFiles(const std::vector<std::string>& words, const std::string& output,
                                  bool strict, const std::string& command) {
  std::vector<LogContent> logs;
  ImportOptions options;
  options.strict = strict;
  options.command = command;
  for (const std::string& word : words) {
    STRATA_TRY(const std::vector<std::string> files, LogFilesOf(word));
    for (const std::string& file : files) {
      STRATA_TRY(LogContent log, ReadAny(file, {.strict = strict}));
      // A rank that logged nothing is none of the others' business.
      if (log.num_records == 0 && files.size() > 1) {
        Warn(fmt::format("{}: nothing in it", file));
        continue;
      }
      if (log.num_records == 0) {
        return Error("nothing to import: {}: it is neither a log of TORCH_TRACE nor an FX graph",
                     file);
      }
      for (const LogRun& run : log.runs)
        options.world = std::max(options.world, run.rank + 1);
      logs.push_back(std::move(log));
    }
  }
  if (logs.empty()) {
    return Error("nothing to import: {}: its logs hold no records", fmt::join(words, ", "));
  }
  STRATA_TRY(const std::unique_ptr<TraceWriter> trace,
             TraceWriter::Create(output, TraceWriter::Mode::kAside));
  ImportSummary summary;
  for (const LogContent& log : logs) {
    STRATA_RETURN_IF_ERROR(ImportLog(log, options, *trace, summary));
  }
  STRATA_RETURN_IF_ERROR(trace->Finish());

  for (const std::string& warning : summary.warnings)
    Warn(warning);
  const auto untold = summary.num_warnings - static_cast<int64_t>(summary.warnings.size());
  if (untold > 0) Warn(fmt::format("and {} more of these", untold));
  return summary;
}

}  // namespace strata::cli
