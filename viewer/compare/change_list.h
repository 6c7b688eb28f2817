#pragma once
#include <string>
#include <vector>

#include "scene/scene.h"
#include "viewer/compare/comparison.h"

namespace strata::viewer {

/// A place where a pattern occurs, or where it is missing.
struct ChangePlace {
  std::string where;               ///< "layers.7"; "–" without a module
  std::vector<SceneNodeId> nodes;  ///< empty: nothing changed there
  bool deviates = false;
  std::string what;  ///< what happened at a deviating place instead
};

/// Equal changes at several places, or one change at one place.
struct Change {
  std::string title;  ///< in the past tense
  std::string where;  ///< "layers.{0..31} equal except layers.7"
  SceneCounts counts;
  std::vector<ChangePlace> places;  ///< deviating ones first
};

/// The changes of a comparison: patterns, then single hunks, largest first.
struct ChangeList {
  std::vector<Change> patterns, singles;
};
ChangeList MakeChangeList(const Comparison& comparison);

}  // namespace strata::viewer
