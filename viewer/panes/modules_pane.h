#pragma once
#include <set>
#include <string>
#include <vector>

#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The tree of modules, with what changed in each. A click opens the slab and moves it into sight.
class ModulesPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  struct TreeRow {
    ClusterId cluster;
    int depth = 0;
  };
  /// The modules below open ones, in order.
  std::vector<TreeRow> RowsOf(const Comparison& comparison) const;
  void DrawRow(Ui& ui, GraphModel& graph, const TreeRow& row, const Area& at);

  std::set<std::string> open_ = {""};  // module paths
};

}  // namespace strata::viewer
