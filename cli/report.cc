#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/source_trace.h"
#include "ir/file.h"
#include "store/trace.h"
#include "tlparse-export/report/report_model.h"

namespace strata::cli {
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

  STRATA_TRY(const SourceTrace source, SourceTrace::Open(input, "strata report " + input));
  if (options.title.empty()) options.title = std::filesystem::path(input).filename().string();
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(source.path()));
  STRATA_TRY(const ReportModel model, MakeReport(*trace, options));
  STRATA_TRY(const std::string html, ReportHtml(model));
  STRATA_RETURN_IF_ERROR(WriteFile(output, html));
  return Exit::kOk;
}

}  // namespace strata::cli
