#pragma once
#include "viewer/compare/async_value.h"
#include "viewer/compare/change_list.h"
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// Equal changes at several places with a small picture of each place; a click goes there.
class PatternsPane {
 public:
  void Draw(Ui& ui, const Area& area);
  /// Of the current comparison; null while they are being counted.
  const ChangeList* Changes(Ui& ui);

 private:
  void Pattern(Ui& ui, UiPanel& panel, const Change& change, size_t index) const;
  void Place(Ui& ui, const Area& area, const ChangePlace& place, const std::string& name) const;
  void Single(Ui& ui, const Area& area, const Change& change, size_t index) const;

  AsyncValue<ChangeList> list_{"patterns"};
};

}  // namespace strata::viewer
