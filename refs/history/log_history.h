#pragma once
#include <cstddef>
#include <memory>

#include "diff/history/history.h"
#include "tlparse-export/torch_trace/read/log.h"

namespace strata {

/// The log that was read last, shared by all histories of one command. Logs of other ranks are read
/// again when a graph of them is loaded.
using LastLog = std::shared_ptr<std::shared_ptr<const LogContent>>;

/// The history of run `index` of `log`. Keeps hashes of the log's texts, not the texts.
History HistoryOfLogRun(const LogContent& log, size_t index, const LastLog& last);

}  // namespace strata
