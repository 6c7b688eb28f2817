#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "refs/warnings.h"
#include "tlparse-export/torch_trace/import/import.h"

namespace strata {

/// The files that a word of the command line names: the file itself, or the logs of a folder in
/// rank order, or a folder without logs itself.
Result<std::vector<std::string>> LogFilesOf(const std::string& word);

/// Imports logs, folders of logs of several ranks, FX texts and folders of tlparse into a new trace
/// at `output`. The file appears when the import is complete. `warn` receives the import's
/// warnings.
Result<ImportSummary> ImportFiles(const std::vector<std::string>& words, const std::string& output,
                                  const ImportOptions& options, const WarningSink& warn);

/// Imports logs of a live run while they grow, into a trace that others can read meanwhile, until
/// an interrupt, or `idle_s` seconds without new records. `warn` receives warnings while they
/// occur.
Result<ImportSummary> FollowFiles(const std::vector<std::string>& words, const std::string& output,
                                  const ImportOptions& options, std::optional<double> idle_s,
                                  const WarningSink& warn);

}  // namespace strata
