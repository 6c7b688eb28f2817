#include <string>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/flags.h"
#include "ir/file.h"
#include "store/trace.h"
#include "tlparse-export/report/report_model.h"

namespace strata::cli {

Result<Exit> RunReport(Args args) {
  std::string input, output;
  ReportOptions options;
  Flags flags("report", "writes one HTML file that shows what each pass did");
  flags.Positional("FILE", &input, "a trace or a log");
  flags.Required("-o,--output", "FILE", &output, "the report to write; - is standard output");
  flags.Option("--title", "TEXT", &options.title, "heading; default: the file's name");
  flags.Example("strata report run.strata -o run.html");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(input));
  STRATA_TRY(const ReportModel model, MakeReport(*trace, options));
  STRATA_TRY(const std::string html, ReportHtml(model));
  STRATA_RETURN_IF_ERROR(WriteFile(output, html));
  return Exit::kOk;
}

}  // namespace strata::cli
