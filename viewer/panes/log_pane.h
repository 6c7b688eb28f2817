#pragma once
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// All messages: files that were opened, warnings of imports, errors.
class LogPane {
 public:
  void Draw(Ui& ui, const Area& area) const;
};

}  // namespace strata::viewer
