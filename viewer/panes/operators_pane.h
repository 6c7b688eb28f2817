#pragma once
#include <string>
#include <vector>

#include "viewer/compare/async_value.h"
#include "viewer/compare/graph_stats.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// How often both graphs call each operator; a click selects the first call.
class OperatorsPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  void Head(Ui& ui, const Area& area);
  void Row(Ui& ui, const Area& area, const OperatorRow& row, int32_t most) const;

  AsyncValue<std::vector<OperatorRow>> rows_{"operators"};
  std::string key_;                 // of `shown_`
  std::vector<OperatorRow> shown_;  // sorted and filtered
  int sort_ = -1;                   // by this column
};

}  // namespace strata::viewer
