#pragma once
#include "viewer/ui/elements.h"

namespace strata::viewer {

/// The bar at the top: the file, where one is in it, the run, commands, the theme.
class TopBar {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  static void DrawPlace(Ui& ui, const Area& area);
};

/// The bar above the graph: the pass with its counts.
class PassBar {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  static float RunButton(Ui& ui, const Area& area);
};

/// The bar at the bottom: what is drawn, the last message, the keys one needs first.
class StatusBar {
 public:
  void Draw(Ui& ui, const Area& area);

 private:
  static float Progress(Ui& ui, const Area& area, float x);
};

}  // namespace strata::viewer
