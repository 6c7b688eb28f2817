#include "runtime/control/breakpoint.h"

#include <string>

#include <doctest/doctest.h>

#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;

constexpr NodeSite kMatmul{
    .graph = "step", .name = "mm_3", .op = "aten.mm.default", .module = "layers.2.attention.wq"};

bool Stops(std::string_view place, std::string_view last_module = "") {
  return OrDie(ParseBreakpoint(place)).Matches(kMatmul, last_module);
}

TEST_CASE("breakpoints find nodes by name, operator and module") {
  CHECK(Stops("node mm_3"));
  CHECK_FALSE(Stops("node mm"));
  CHECK(Stops("op aten.mm.default"));
  CHECK(Stops("op aten.mm"));
  CHECK(Stops("op mm"));
  CHECK_FALSE(Stops("op m"));
  CHECK_FALSE(Stops("op mm.out"));
  CHECK(Stops("module layers.2.attention.wq"));
  CHECK(Stops("module layers.*"));
  CHECK(Stops("module layers.?.attention"));
  CHECK_FALSE(Stops("module layers.1"));
  CHECK_FALSE(Stops("pass dce"));
}

TEST_CASE("a breakpoint at a module stops where the module is entered") {
  CHECK_FALSE(Stops("module layers.2", "layers.2.attention_norm"));
  CHECK(Stops("module layers.2", "layers.1.feed_forward"));
  CHECK(Stops("module layers.2 if nan > 0", "layers.2.attention_norm"));
}

TEST_CASE("conditions compare statistics of values") {
  const ValueStatistics values{
      .elements = 4, .nan_count = 1, .inf_count = 0, .min = -7.0, .max = 2.0, .mean = -1.0};
  const auto holds = [&](std::string_view text) {
    return OrDie(ParseBreakpoint(text)).predicate->Holds(values);
  };
  CHECK(holds("nan"));
  CHECK_FALSE(holds("inf"));
  CHECK(holds("if abs_max >= 7"));
  CHECK_FALSE(holds("if abs_max > 7"));
  CHECK(holds("node mm_3 if min < -6.5"));
  CHECK(holds("op mm if mean == -1"));
  CHECK(holds("if max != 3"));
  CHECK(holds("if inf <= 0"));
}

TEST_CASE("places that cannot be read say what can be written") {
  for (const char* text : {"", "node", "node a b", "line 3", "step", "step x", "step 0", "pass",
                           "if", "if max", "if max > x", "if size > 3", "if max ~ 3",
                           "pass a if max > 1", "nan if max > 1", "if max > 1 2", "if max > nan"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseBreakpoint(text).has_value());
  }
  CHECK(MessageOf(ParseBreakpoint("line 3")).find("node NAME") != std::string::npos);
}

}  // namespace
}  // namespace strata
