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
  bool Row(Ui& ui, const Area& area, SubjectId id) const;

  std::string filter_;
  bool focus_ = false;
  SubjectId shown_;  // that was scrolled to last
};

}  // namespace strata::viewer
