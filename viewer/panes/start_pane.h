#pragma once
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// What is shown without a document: how to open one, what went wrong, what is being read.
class StartPane {
 public:
  void Draw(Ui& ui, const Area& area);
};

}  // namespace strata::viewer
