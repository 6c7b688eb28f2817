#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct ImFont;

namespace strata::viewer {

enum class Face : uint8_t { kSans, kBold, kMono };

/// A font at a size. Text has one of the sizes that were baked, so it is never blurred.
struct Font {
  ImFont* font = nullptr;
  float size = 13;  ///< in pixels of the screen

  float WidthOf(std::string_view text) const;
  /// The text, with an ellipsis if it is wider than `width`; "" when not even that fits. Sentences
  /// lose their end.
  std::string Cut(std::string_view text, float width) const;
  /// The same for names and paths, which lose their middle.
  std::string CutName(std::string_view text, float width) const;
};

/// The fonts of the viewer: DejaVu in three faces and several sizes.
class Fonts {
 public:
  /// Fills the font atlas of Dear ImGui. `scale`: of the screen. Errors: a font file is missing.
  Status Load(float scale);

  /// The nearest font that is not larger than `pixels` before scaling, and at least 9 pixels.
  Font Get(Face face, float pixels) const;
  float scale() const { return scale_; }

 private:
  struct Baked {
    float pixels = 0;  // before scaling
    ImFont* font = nullptr;
  };
  std::array<std::vector<Baked>, 3> faces_;  // by Face, ascending
  float scale_ = 1;
};

}  // namespace strata::viewer
