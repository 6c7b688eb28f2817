#pragma once
#include <string>
#include <vector>

#include "viewer/ui/elements.h"

namespace strata::viewer {

/// What is shown without a document: how to open one, what went wrong, what is being read.
class StartPane {
 public:
  /// `recent`: files, newest first; a click opens one.
  void Draw(Ui& ui, const Area& area, const std::vector<std::string>& recent);

 private:
  static void Loading(Ui& ui, UiPanel& panel, float left, float width);
  static void Demo(Ui& ui, UiPanel& panel, float left, float width);
};

}  // namespace strata::viewer
