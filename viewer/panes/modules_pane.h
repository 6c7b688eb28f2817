#pragma once
#include <set>
#include <string>
#include <vector>

#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The tree of modules, with what changed in each. A click opens the slab and moves it into sight.
class ModulesPane {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  std::set<std::string> open_ = {""};  // module paths
};

}  // namespace strata::viewer
