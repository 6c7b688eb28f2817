#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "viewer/compare/comparison.h"

namespace strata::viewer {

/// A line of both graphs as native text, one below the other.
struct TextRow {
  enum class Kind : uint8_t { kSame, kRemoved, kAdded, kFold };
  Kind kind = Kind::kSame;
  SceneNodeId node;
  int32_t old_line = 0, new_line = 0;  ///< from 1; 0: the side has no such line
  std::string text;
  std::string other;   ///< the line on the other side, if it differs
  int32_t folded = 0;  ///< kFold: unchanged lines that are left out
};

/// Lines that differ with `context` lines around them, and folds between; all lines of a graph
/// without differences.
std::vector<TextRow> MakeTextDiff(const Comparison& comparison, size_t context = 3);

/// The node that has this line, from 1, of the graph after; of the graph before where all nodes are
/// removed. None: there is no such line.
SceneNodeId NodeOfLine(const Comparison& comparison, int64_t line);

/// The parts of `line` whose words do not occur in `other`, as ranges of bytes.
std::vector<std::pair<size_t, size_t>> DifferingWords(std::string_view line,
                                                      std::string_view other);

}  // namespace strata::viewer
