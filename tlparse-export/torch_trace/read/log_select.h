#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tlparse-export/torch_trace/read/log.h"

namespace strata {

/// Which graph of a log: the selector of a REF.
struct LogSelector {
  std::optional<int64_t> run = {}, rank = {};  ///< runs count from 1
  std::optional<std::string> graph = {};  ///< name of a graph (its last snapshot), or of one record
  std::optional<std::string> pass = {};   ///< index, name, or the beginning of a name and `…`
  bool before = false;                    ///< of the pass; else after
};

/// A graph at one snapshot.
struct LogChoice {
  const LogRun* run = nullptr;
  size_t graph = 0, snapshot = 0;
  std::string selector;  ///< that names this one alone

  const LogGraph& graph_of() const { return run->graphs[graph]; }
  const LogSnapshot& snapshot_of() const { return run->graphs[graph].snapshots[snapshot]; }
};

/// All that the selector may mean; at least one. Errors: nothing of that name, with what there is.
Result<std::vector<LogChoice>> Choose(const LogContent& log, const LogSelector& selector);

}  // namespace strata
