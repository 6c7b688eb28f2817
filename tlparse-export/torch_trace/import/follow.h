#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tlparse-export/torch_trace/import/import.h"

namespace strata {

struct FollowOptions {
  ImportOptions import;
  /// The logs have ended when nothing came for so long; none: they go on until `wait` stops.
  std::optional<double> idle_s = {};
  /// Waits `ms` milliseconds; true: stop. A clock for programs, a script for tests.
  std::function<bool(int ms)> wait;
};

/// Writes logs of a live run into a live trace while they grow. A word is a log or a folder of
/// them; what is not there yet is waited for, and so are further logs of a folder. A record is
/// stored when the next one begins, or when its md5 shows that it is whole. A log that is cut or
/// replaced continues from its new beginning. What comes in crowds, and the index of graphs, is
/// held back for some seconds. In the end all runs are ended. Errors: as ImportLogs; a compressed
/// log.
Status FollowLogs(const std::vector<std::string>& words, const FollowOptions& options,
                  TraceWriter& trace, ImportSummary& summary);

}  // namespace strata
