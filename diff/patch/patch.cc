#include "diff/patch/patch.h"

#include <algorithm>
#include <array>

namespace strata {
namespace {

// What FX text writes as code and the graph keeps in attributes; see ir/fx/fx.h. The text of the
// result is wrong without them.
bool IsFormAttribute(std::string_view key) {
  static constexpr std::array<std::string_view, 8> kForm = {
      "argument", "python_type", "class",     "signature",
      "return",   "return_type", "arguments", "flatten"};
  return std::ranges::find(kForm, key) != kForm.end();
}

}  // namespace

NativeLineStyle LineStyleOf(Patch::Carries carries) {
  NativeLineStyle style;
  style.sources = carries == Patch::Carries::kEverything;
  style.places = carries != Patch::Carries::kComputation;
  if (carries == Patch::Carries::kComputation) style.attribute = &IsFormAttribute;
  return style;
}

std::string_view ToString(Patch::Carries carries) {
  switch (carries) {
    case Patch::Carries::kComputation:
      return "computation";
    case Patch::Carries::kPlaces:
      return "places";
    case Patch::Carries::kEverything:
      return "everything";
  }
  return "";
}

}  // namespace strata
