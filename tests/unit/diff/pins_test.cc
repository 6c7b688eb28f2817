#include "diff/policy/pins.h"

#include <doctest/doctest.h>

namespace strata {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pins ParseOrDie(const std::string& text) {
  Result<Pins> pins = ParsePins(text, "p.toml");
  REQUIRE_MESSAGE(pins, pins.error().message());
  return *pins;
}

TEST_CASE("what is printed of pins reads back as the same") {
  const std::string text =
      "before = \"6af4cbe5e67fe762625b0dc91f5c9b66\"\n"
      "after = \"2d4139e46554a32688e12fb48fb4eea1\"\n"
      "same = [\n"
      "  [\"view\", \"reshape\"],\n"
      "  [\"true_graph_0/add\", \"a \\\"b\\\" \\\\ \\u001b\"],\n"
      "]\n"
      "never = []\n";
  const Pins pins = ParseOrDie(text);
  CHECK(pins.same == Pairs{{"view", "reshape"}, {"true_graph_0/add", "a \"b\" \\ \x1b"}});
  CHECK(PrintPins(pins) == text);
}

TEST_CASE("a pin takes the place of what was said of its nodes") {
  Pins pins;
  PinNever(pins, "a", "b");
  PinNever(pins, "a", "b");
  CHECK(pins.never == Pairs{{"a", "b"}});
  PinSame(pins, "a", "c");
  CHECK(pins.never.empty());
  PinSame(pins, "d", "c");
  CHECK(pins.same == Pairs{{"d", "c"}});
}

TEST_CASE("a broken match is no pin any more, others stay") {
  Pins pins;
  PinSame(pins, "a", "b");
  PinSame(pins, "c", "d");
  PinNever(pins, "a", "b");
  CHECK(pins.same == Pairs{{"c", "d"}});
  CHECK(pins.never == Pairs{{"a", "b"}});
}

TEST_CASE("what is said of a node goes, and an empty name stands for none") {
  Pins pins;
  PinNever(pins, "a", "");
  PinNever(pins, "", "b");
  PinSame(pins, "c", "d");
  Unpin(pins, "", "d");
  CHECK(pins.same.empty());
  CHECK(pins.never == Pairs{{"a", ""}, {"", "b"}});
  Unpin(pins, "a", "");
  CHECK(pins.never == Pairs{{"", "b"}});
}

}  // namespace
}  // namespace strata
