#include "cli/import_files.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "cli/command.h"
#include "store/trace.h"
#include "tlparse-export/torch_trace/input_files.h"

namespace strata::cli {

Result<std::vector<std::string>> LogFilesOf(const std::string& word) {
  std::error_code error;
  if (!std::filesystem::is_directory(word, error)) return std::vector<std::string>{word};
  std::vector<std::string> files = LogsOfFolder(word);
  if (files.empty()) return Error("no logs: {}: the folder has no file '*.log'", word);
  return files;
}

Result<ImportSummary> ImportFiles(const std::vector<std::string>& words, const std::string& output,
                                  bool strict, const std::string& command) {
  STRATA_TRY(const std::unique_ptr<LogInputs> inputs, FindInputs(words));
  STRATA_TRY(const std::unique_ptr<TraceWriter> trace,
             TraceWriter::Create(output, TraceWriter::Mode::kAside));
  ImportOptions options;
  options.strict = strict;
  options.command = command;
  ImportSummary summary;
  const Status imported = ImportLogs(*inputs, options, *trace, summary);
  for (const std::string& warning : summary.warnings)
    Warn(warning);
  const auto untold = summary.num_warnings - static_cast<int64_t>(summary.warnings.size());
  if (untold > 0) Warn(fmt::format("and {} more of these", untold));
  if (!imported) return imported.error();
  STRATA_RETURN_IF_ERROR(trace->Finish());
  return summary;
}

}  // namespace strata::cli
