#pragma once
#include <cstddef>

#include "viewer/compare/async_value.h"
#include "viewer/compare/cost_sheet.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// How time, bytes moved and peak changed, by change, module, pass and node; a click on a node
/// selects it.
class CostsPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  void List(Ui& ui, UiPanel& panel, const CostSheet::List& list) const;
  void Row(Ui& ui, const Area& area, const CostSheet::Row& row, size_t index) const;

  AsyncValue<CostSheet> sheet_{"costs"};
};

}  // namespace strata::viewer
