#include "viewer/model/match_pins.h"

#include <filesystem>

#include <doctest/doctest.h>

#include "base/file.h"
#include "base/interrupt.h"
#include "ir/text/native_text.h"

namespace strata::viewer {
namespace {

std::unique_ptr<Module> Graphs() {
  Result<std::unique_ptr<Module>> module = ParseText(
      "graph a\n  x = placeholder : f32[2]\n  r = aten.relu.default(x) : f32[2]\n  output([r])\n"
      "graph b\n  x = placeholder : f32[2]\n  s = aten.sin.default(x) : f32[2]\n  output([s])\n");
  REQUIRE_MESSAGE(module, module.error().message());
  return std::move(*module);
}

TEST_CASE("pins are kept beside the file, for the two graphs that they are of") {
  Result<TemporaryPath> folder = TemporaryPath::MakeFolder();
  REQUIRE(folder);
  const std::unique_ptr<Module> module = Graphs();
  const Graph &a = module->graph({0}), &b = module->graph({1});
  const std::string file = folder->path() + "/run.strata";
  Result<std::optional<Pins>> none = ReadPins(file, a, b);
  REQUIRE(none);
  CHECK_FALSE(*none);

  Pins pins;
  pins.before = FingerprintOf(a);
  pins.after = FingerprintOf(b);
  pins.file = PinsPath(file, *pins.before, *pins.after);
  CHECK(pins.file.starts_with(file + "." + ToString(*pins.before).substr(0, 8) + "-"));
  PinSame(pins, "r", "s");
  REQUIRE(WritePins(pins));
  const Result<std::optional<Pins>> read = ReadPins(file, a, b);
  REQUIRE(read);
  REQUIRE(*read);
  CHECK((*read)->same == pins.same);
  const Result<std::optional<Pins>> others = ReadPins(file, b, a);
  REQUIRE(others);
  CHECK_FALSE(*others);

  Unpin(pins, "r", "s");
  REQUIRE(WritePins(pins));
  CHECK_FALSE(std::filesystem::exists(pins.file));
}

TEST_CASE("the pins of a folder stand beside it") {
  const Fingerprint none{};
  CHECK(PinsPath("logs/", none, none) == PinsPath("logs", none, none));
}

}  // namespace
}  // namespace strata::viewer
