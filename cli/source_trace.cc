#include "cli/source_trace.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/import_files.h"
#include "store/trace.h"

namespace strata::cli {

Result<SourceTrace> SourceTrace::Open(const std::string& file, const std::string& command) {
  SourceTrace source;
  source.path_ = file;
  if (LooksLikeTrace(file)) return source;
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "strata-XXXXXX").string();
  {
    const InterruptsHeld held;
    if (error || ::mkdtemp(folder.data()) == nullptr) {
      return Error(ErrorCode::kIo, "no folder for a moment: {}: set TMPDIR to one that is writable",
                   folder);
    }
    source.folder_ = TemporaryPath(folder);
  }
  source.path_ = folder + "/log.strata";
  ImportOptions options;
  options.command = command;
  STRATA_TRY(const ImportSummary summary, ImportFiles({file}, source.path_, options));
  if (summary.graphs == 0) Warn(fmt::format("no graphs: {}: it has artifacts only", file));
  return source;
}

}  // namespace strata::cli
