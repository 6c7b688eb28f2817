#include "cli/source_trace.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

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
  if (error || ::mkdtemp(folder.data()) == nullptr) {
    return Error(ErrorCode::kIo, "no folder for a moment: {}: set TMPDIR to one that is writable",
                 folder);
  }
  source.folder_ = folder;
  source.path_ = folder + "/log.strata";
  ImportOptions options;
  options.command = command;
  STRATA_TRY(const ImportSummary summary, ImportFiles({file}, source.path_, options));
  if (summary.graphs == 0) Warn(fmt::format("no graphs: {}: it has artifacts only", file));
  return source;
}

SourceTrace::SourceTrace(SourceTrace&& other) noexcept
    : path_(std::move(other.path_)), folder_(std::exchange(other.folder_, std::string())) {}

SourceTrace::~SourceTrace() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

}  // namespace strata::cli
