#pragma once
#include <string>
#include <vector>

#include "viewer/compare/async_value.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The nodes of the pass as a table: differences, or all nodes.
class TablePane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  struct Column {
    const char* title;
    float share;  ///< of the width
  };
  static const std::vector<Column>& Columns();
  void Head(Ui& ui, const Area& area);
  /// `right`: where the columns end, the same in all rows and the head.
  void Row(Ui& ui, const Area& area, float right, SceneNodeId node) const;

  int sort_ = -1;  // column; -1: root causes first
  bool down_ = false;
  AsyncValue<std::vector<SceneNodeId>> rows_{"table"};
  SceneNodeId shown_;  // that was scrolled to last
};

}  // namespace strata::viewer
