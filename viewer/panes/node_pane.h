#pragma once
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The selected node: fields before and after, inputs, outputs, source, match.
class NodePane {
 public:
  void Draw(Ui& ui, const Area& area);
};

}  // namespace strata::viewer
