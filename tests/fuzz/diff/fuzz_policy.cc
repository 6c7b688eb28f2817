#include <cstddef>
#include <cstdint>
#include <string_view>

#include "diff/diff.h"
#include "diff/policy/pins.h"
#include "diff/policy/policy.h"
#include "ir/text/native_text.h"

// Any text is a policy, or an error; what was read judges a diff. The same for pins.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strata;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const auto before = ParseText(
      "graph g\n  x = placeholder : f32[4]\n  y = aten.sin.default(x) : f32[4]\n  z = "
      "aten.cos.default(y) : f32[4] {module=layers.3}\n  output([y, z])\n");
  static const auto after = ParseText(
      "graph g\n  x = placeholder : f32[4]\n  y = aten.tan.default(x) : f32[4]\n  c = "
      "_c10d_functional.all_reduce.default(y, 'sum', '0') : f32[4]\n  output([c])\n");
  STRATA_CHECK(before && after);
  const Graph& a = (*before)->graph({0});
  const Graph& b = (*after)->graph({0});
  if (const Result<Policy> policy = ParsePolicy(text, "p")) {
    static const Result<GraphDiff> diff = Diff(a, b);
    STRATA_CHECK(diff.has_value());
    static_cast<void>(CheckPolicy(*policy, *diff));
  }
  if (const Result<Pins> pins = ParsePins(text, "p")) {
    DiffOptions options;
    static_cast<void>(UsePins(*pins, a, b, options));
    static_cast<void>(Diff(a, b, options));
  }
  return 0;
}
