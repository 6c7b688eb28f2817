#pragma once
#include <cstdint>

#include "scene/scene.h"

namespace strata::viewer {

/// A colour as Dear ImGui packs it: 0xAABBGGRR.
using Color = uint32_t;

/// The tokens of the design language; the report's page has the same in assets/report/report.css.
struct Theme {
  bool dark = false;
  Color bg, surface, well, well_2, fold, rule, rule_2;
  Color ink, ink_2, ink_3, ink_4, edge, tick, tick_2;
  Color accent, accent_fill, halo, badge_ink, hatch, scrim;
  struct StatusColors {
    Color line, text, fill;
  };
  StatusColors added, removed, changed, moved;

  /// Of a status that has a colour; kDerived and kSame have none.
  const StatusColors* Of(SceneStatus status) const;
  /// Of counts and words.
  Color TextOf(SceneStatus status) const;
};

/// Cividis, readable with every kind of colour vision (Nuñez, Anderton, Renslow 2018): the colour
/// of a share from 0 to 1, and an ink that can be read on it.
struct Heat {
  Color fill, ink;
};
Heat HeatOf(float share);

const Theme& LightTheme();
const Theme& DarkTheme();

/// Sets colours and sizes of Dear ImGui's own elements. `scale`: of the screen.
void ApplyTheme(const Theme& theme, float scale);

}  // namespace strata::viewer
