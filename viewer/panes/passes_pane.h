#pragma once
#include <string>

#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The list of passes and graphs of all runs, with what each changed.
class PassesPane {
 public:
  void Draw(Ui& ui, const Area& area);
  void FocusFilter() { focus_ = true; }

 private:
  bool Row(Ui& ui, const Area& area, int32_t index) const;

  std::string filter_;
  bool focus_ = false;
  int32_t shown_ = -1;  // the subject that was scrolled to last
};

}  // namespace strata::viewer
