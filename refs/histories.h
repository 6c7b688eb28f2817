#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diff/history/history.h"
#include "refs/ref.h"

namespace strata {

/// The runs that `text` names: those of a trace or of a log, of all logs of a folder, or the single
/// graph of a text. Of the selector only `run=` and `rank=` choose; the rest is the caller's.
/// Graphs are parsed when they are loaded; of a log only hashes of its texts are kept.
///
/// Errors: as LoadRef; a folder without logs.
Result<std::vector<History>> LoadHistories(std::string_view text);

/// The one run that `text` names. Errors: several; they are listed.
Result<History> LoadHistory(std::string_view text);

}  // namespace strata
