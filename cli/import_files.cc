#include "cli/import_files.h"

#include <filesystem>

#include <fmt/format.h>

#include "base/interrupt.h"
#include "cli/command.h"
#include "store/trace_writer.h"
#include "tlparse-export/torch_trace/follow.h"
#include "tlparse-export/torch_trace/input_files.h"

namespace strata::cli {
namespace {

/// Prints warnings, those that it has not printed yet.
class WarningPrinter {
 public:
  explicit WarningPrinter(const ImportSummary& summary) : summary_(summary) {}

  void PrintNew() {
    for (; printed_ < summary_.warnings.size(); ++printed_)
      Warn(summary_.warnings[printed_]);
  }
  void PrintRest() {
    PrintNew();
    const auto untold = summary_.num_warnings - static_cast<int64_t>(printed_);
    if (untold > 0) Warn(fmt::format("and {} more of these", untold));
  }

 private:
  const ImportSummary& summary_;
  size_t printed_ = 0;
};

}  // namespace

Result<std::vector<std::string>> LogFilesOf(const std::string& word) {
  std::error_code error;
  if (!std::filesystem::is_directory(word, error)) return std::vector<std::string>{word};
  std::vector<std::string> files = LogsOfFolder(word);
  if (files.empty()) return Error("no logs: {}: the folder has no file '*.log'", word);
  return files;
}

Result<ImportSummary> ImportFiles(const std::vector<std::string>& words, const std::string& output,
                                  const ImportOptions& options) {
  STRATA_TRY(const std::unique_ptr<LogInputs> inputs, FindInputs(words));
  STRATA_TRY(const std::unique_ptr<TraceWriter> trace,
             TraceWriter::Create(output, TraceWriter::Mode::kAside));
  ImportSummary summary;
  const Status imported = ImportLogs(*inputs, options, *trace, summary);
  WarningPrinter(summary).PrintRest();
  if (!imported) return imported.error();
  STRATA_RETURN_IF_ERROR(trace->Finish());
  return summary;
}

Result<ImportSummary> FollowFiles(const std::vector<std::string>& words, const std::string& output,
                                  const ImportOptions& options, std::optional<double> idle_s) {
  STRATA_TRY(const std::unique_ptr<TraceWriter> trace, TraceWriter::Create(output));
  ImportSummary summary;
  WarningPrinter warnings(summary);
  const StopRequest stop;
  const auto wait = [&](int ms) {
    warnings.PrintNew();
    return stop.Wait(ms);
  };
  const Status followed =
      FollowLogs(words, {.import = options, .idle_s = idle_s, .wait = wait}, *trace, summary);
  warnings.PrintRest();
  if (!followed) return followed.error();
  STRATA_RETURN_IF_ERROR(trace->Finish());
  return summary;
}

}  // namespace strata::cli
