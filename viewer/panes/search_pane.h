#pragma once
#include <string>

#include "viewer/ui/elements.h"

namespace strata::viewer {

/// Search over the nodes of the pass and the names of passes.
class SearchPane {
 public:
  void Draw(Ui& ui, const Area& area);
  void Focus() { focus_ = true; }

 private:
  bool focus_ = false;
};

}  // namespace strata::viewer
