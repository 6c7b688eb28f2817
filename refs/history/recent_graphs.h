#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "diff/history/history.h"

namespace strata {

/// Keeps the graphs that were loaded last: a caller that compares snapshots in order loads each
/// twice.
class RecentGraphs {
 public:
  /// `key`: equal for equal graphs.
  template <class Load>
  Result<LoadedGraph> Get(const std::string& key, Load&& load) {
    for (const auto& [known, graph] : graphs_) {
      if (known == key) return graph;
    }
    STRATA_TRY(LoadedGraph graph, load());
    constexpr size_t kKept = 4;
    if (graphs_.size() >= kKept) graphs_.erase(graphs_.begin());
    graphs_.emplace_back(key, graph);
    return graph;
  }

 private:
  std::vector<std::pair<std::string, LoadedGraph>> graphs_;
};

}  // namespace strata
