#pragma once
#include <string>
#include <vector>

#include "ir/result.h"
#include "tlparse-export/torch_trace/import.h"

namespace strata::cli {

/// Imports logs, folders of logs of several ranks, and FX texts into a new trace at `output`, which
/// appears when all is in it. Warnings go to stderr. `command` is kept in the runs.
Result<ImportSummary> ImportFiles(const std::vector<std::string>& words, const std::string& output,
                                  bool strict, const std::string& command);

}  // namespace strata::cli
