#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tlparse-export/torch_trace/import.h"

namespace strata::cli {

/// The files that a word of the command line means: itself, or the logs of a folder in order of
/// ranks.
Result<std::vector<std::string>> LogFilesOf(const std::string& word);

/// Imports logs, folders of logs of several ranks, FX texts and folders of tlparse into a new trace
/// at `output`, which appears when all is in it. Warnings go to stderr.
Result<ImportSummary> ImportFiles(const std::vector<std::string>& words, const std::string& output,
                                  const ImportOptions& options);

/// Imports logs of a live run while they grow, into a trace that others can read meanwhile, until
/// an interrupt, or `idle_s` seconds without anything new. Warnings go to stderr as they come.
Result<ImportSummary> FollowFiles(const std::vector<std::string>& words, const std::string& output,
                                  const ImportOptions& options, std::optional<double> idle_s);

}  // namespace strata::cli
