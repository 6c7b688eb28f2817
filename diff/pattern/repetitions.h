#pragma once
#include <cstdint>
#include <vector>

#include "diff/match/labels.h"

namespace strata {

/// A stretch of a sequence that repeats.
struct Repetition {
  std::vector<int32_t> begins;  ///< of each repetition, ascending
  int32_t end = 0;              ///< of the last one
};
struct Repetitions {
  std::vector<Repetition> stretches;  ///< ascending; all repeat equally often
  int32_t explained = 0;              ///< labels that every repetition of their stretch has
  int32_t repeated = 0;               ///< labels that occur more than once: at least as many
};

/// Stretches that repeat equally often and have at least half of their labels in every repetition:
/// those that explain most labels, and at least a quarter of all. A repetition begins at a label
/// that occurs once in each, so one that has a little more or less than the others stays one.
/// Near linear. Empty when nothing repeats.
Repetitions FindRepetitions(const std::vector<uint64_t>& labels);

/// Stretches of a sequence of nodes. Nodes are distinguished by what they are and, where that
/// explains more, by what is around them. Places in the result count in `sequence`.
std::vector<Repetition> FindStretches(const Labels& labels, const std::vector<EntityId>& sequence);

}  // namespace strata
