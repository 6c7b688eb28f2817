#include <filesystem>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/import_files.h"
#include "ir/file.h"
#include "store/trace.h"
#include "tlparse-export/report/report_model.h"

namespace strata::cli {
namespace {

/// A file name of our own for a trace that is needed for a moment; removed at the end.
class ScratchTrace {
 public:
  ScratchTrace()
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("strata-report-{}", ::getpid())) {
    std::filesystem::create_directories(folder_, error_);
  }
  ~ScratchTrace() { std::filesystem::remove_all(folder_, error_); }
  ScratchTrace(const ScratchTrace&) = delete;
  ScratchTrace& operator=(const ScratchTrace&) = delete;

  std::string path() const { return (folder_ / "log.strata").string(); }

 private:
  std::filesystem::path folder_;
  std::error_code error_;
};

}  // namespace

Result<Exit> RunReport(Args args) {
  std::string input, output;
  ReportOptions options;
  Flags flags("report", "writes one HTML file that shows what each pass did");
  flags.Positional("FILE", &input, "a trace, a log, a folder of logs, or an FX text");
  flags.Required("-o,--output", "FILE", &output, "the report to write; - is standard output");
  flags.Option("--title", "TEXT", &options.title, "heading; default: the file's name");
  flags.Example("strata report run.strata -o run.html");
  flags.Example("strata report dedicated_log_torch_trace_rank_0_x1.log -o log.html");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  const ScratchTrace scratch;
  std::string path = input;
  if (!LooksLikeTrace(input)) {
    path = scratch.path();
    STRATA_TRY(const ImportSummary summary,
               ImportFiles({input}, path, /*strict=*/false, "strata report " + input));
    if (summary.graphs == 0)
      Warn(fmt::format("no graphs: {}: the report shows artifacts only", input));
  }
  if (options.title.empty()) options.title = std::filesystem::path(input).filename().string();
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(path));
  STRATA_TRY(const ReportModel model, MakeReport(*trace, options));
  STRATA_TRY(const std::string html, ReportHtml(model));
  STRATA_RETURN_IF_ERROR(WriteFile(output, html));
  return Exit::kOk;
}

}  // namespace strata::cli
