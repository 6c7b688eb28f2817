#pragma once
#include <string>
#include <vector>

#include "scene/cost_diff.h"
#include "viewer/compare/comparison.h"

namespace strata::viewer {

/// How costs changed between the graphs of a comparison, as the pane shows it.
struct CostSheet {
  struct Row {
    CostChange change;
    SceneNodeId node;  ///< none: the row is of several
  };
  struct List {
    std::string title;
    std::vector<Row> rows;  ///< most changed time first
  };
  std::string words;  ///< what the graphs cost, before and after
  std::vector<List> lists;
};
CostSheet CostSheetOf(const Comparison& comparison);

}  // namespace strata::viewer
