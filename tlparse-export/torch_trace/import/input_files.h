#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tlparse-export/torch_trace/import/import.h"

namespace strata {

/// What people name when they want logs imported, as inputs in order of ranks:
///
///  - a file: a log or an FX text, also compressed; `-` is standard input;
///  - a folder of logs, `*.log`, one per rank, also compressed;
///  - a folder that tlparse wrote, also for several ranks (`rank_0`, `rank_1`, …);
///  - a folder of FX texts, `*.txt`;
///  - a folder that `strata export --fx` wrote, each of its runs;
///  - a folder that PyTorch wrote with TORCH_COMPILE_DEBUG=1, each of its processes.
///
/// Errors: a folder with nothing of that in it. Files are opened when their turn comes.
Result<std::unique_ptr<LogInputs>> FindInputs(const std::vector<std::string>& words);

/// Whether a folder is one of these, other than of FX texts.
bool HoldsRuns(const std::string& folder);

/// The logs of a folder, `*.log` and compressed ones, in order of ranks and then of names.
std::vector<std::string> LogsOfFolder(const std::string& folder);

}  // namespace strata
