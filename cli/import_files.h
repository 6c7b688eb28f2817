#pragma once
#include <string>
#include <vector>

#include "ir/result.h"
#include "tlparse-export/torch_trace/import.h"

namespace strata::cli {

/// The files that a word of the command line means: itself, or the logs of a folder by name.
/// Errors: a folder without logs.
Result<std::vector<std::string>> LogFilesOf(const std::string& word);

/// Imports logs, folders of logs of several ranks, and FX texts into a new trace at `output`, which
/// appears when all is in it. Warnings go to stderr. `command` is kept in the runs.
Result<ImportSummary> ImportFiles(const std::vector<std::string>& words, const std::string& output,
                                  bool strict, const std::string& command);

}  // namespace strata::cli
