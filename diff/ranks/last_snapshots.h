#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "diff/history/history.h"

namespace strata {

/// A graph as a rank left it.
struct LastSnapshot {
  std::string graph;  ///< by a name that ranks have in common
  int32_t snapshot = 0;
};

/// The graphs of a rank as its passes left them, in order of their first steps. `cached`: the rank
/// that took most from compiler caches, null where none did. What it took from there has no passes
/// in its log, so these passes count on no rank.
std::vector<LastSnapshot> LastSnapshots(const History& history, const History* cached);

}  // namespace strata
