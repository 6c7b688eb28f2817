#include "viewer/compare/export_html.h"

#include <filesystem>

#include "base/file.h"
#include "store/trace_reader.h"
#include "tlparse-export/report/diff_report.h"
#include "tlparse-export/report/report_model.h"

namespace strata::viewer {
namespace {

Result<ReportModel> ModelOf(const std::string& trace, const std::string& file,
                            const Comparison& comparison) {
  if (trace.empty()) {
    return DiffReport(comparison.diff(), "before", "after", comparison.title(),
                      &comparison.costs());
  }
  STRATA_TRY(const std::unique_ptr<TraceReader> reader, TraceReader::Open(trace));
  return MakeReport(*reader, {.title = std::filesystem::path(file).filename().string()});
}

}  // namespace

Status WriteHtml(const std::string& trace, const std::string& file, const Comparison& comparison,
                 const std::string& path) {
  STRATA_TRY(const ReportModel model, ModelOf(trace, file, comparison));
  STRATA_TRY(const std::string html, ReportHtml(model));
  return WriteFile(path, html);
}

}  // namespace strata::viewer
