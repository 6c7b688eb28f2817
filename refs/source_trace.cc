#include "refs/source_trace.h"

#include <fmt/format.h>

#include "refs/import_files.h"
#include "store/trace.h"

namespace strata {

Result<SourceTrace> SourceTrace::Open(const std::string& file, const std::string& command,
                                      const WarningSink& warn,
                                      std::function<Status(double)> on_progress) {
  SourceTrace source;
  source.path_ = file;
  if (LooksLikeTrace(file)) return source;
  STRATA_TRY(source.folder_, TemporaryPath::MakeFolder());
  source.path_ = source.folder_.path() + "/log.strata";
  ImportOptions options;
  options.command = command;
  options.on_progress = std::move(on_progress);
  STRATA_TRY(const ImportSummary summary, ImportFiles({file}, source.path_, options, warn));
  if (summary.graphs == 0 && warn) warn(fmt::format("no graphs: {}: it has artifacts only", file));
  return source;
}

}  // namespace strata
