#include "cli/source_trace.h"

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/import_files.h"
#include "store/trace.h"

namespace strata::cli {

Result<SourceTrace> SourceTrace::Open(const std::string& file, const std::string& command) {
  SourceTrace source;
  source.path_ = file;
  if (LooksLikeTrace(file)) return source;
  STRATA_TRY(source.folder_, TemporaryPath::MakeFolder());
  source.path_ = source.folder_.path() + "/log.strata";
  ImportOptions options;
  options.command = command;
  STRATA_TRY(const ImportSummary summary, ImportFiles({file}, source.path_, options));
  if (summary.graphs == 0) Warn(fmt::format("no graphs: {}: it has artifacts only", file));
  return source;
}

}  // namespace strata::cli
