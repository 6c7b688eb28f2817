#include "diff/history/made_by.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// `name=pass` of each node of a snapshot that a pass made.
std::vector<std::string> Made(const History& history, int32_t snapshot) {
  const auto passes = OrDie(PassesThatMade(history, snapshot));
  const LoadedGraph loaded = OrDie(history.load(snapshot));
  std::vector<std::string> made;
  const Listing listing(loaded.graph());
  REQUIRE_EQ(passes.size(), listing.ids().size());
  for (EntityId id : listing.ids()) {
    if (!passes[id].empty()) made.push_back(listing.name(id) + "=" + passes[id]);
  }
  return made;
}

TEST_CASE("made by: passes and changes between passes, of snapshots before and after passes") {
  History history;
  history.graphs = {"g"};
  for (int32_t i = 0; i < 4; ++i)
    history.snapshots.push_back({.graph = 0, .ref = "r", .content = std::to_string(i)});
  history.load = [](int32_t snapshot) -> Result<LoadedGraph> {
    const std::string x = "x = placeholder : f32[8]\n";
    const std::string a = "a = aten.sin.default(x) : f32[8]\n";
    const std::string b = "b = aten.cos.default(a) : f32[8]\n";
    const std::string c = "c = aten.tanh.default(b) : f32[8]\n";
    const std::string texts[] = {x + "output(x)\n", x + a + "output(a)\n",
                                 x + a + b + "output(b)\n", x + a + b + c + "output(c)\n"};
    return LoadedGraph{ParseBody(texts[snapshot]), {0}};
  };
  history.steps.resize(2);
  history.steps[0].before = 0;
  history.steps[0].after = 1;
  history.steps[0].pass = "first";
  history.steps[1].before = 2;
  history.steps[1].after = 3;
  history.steps[1].pass = "second";
  CHECK(Made(history, 0).empty());
  CHECK_EQ(Made(history, 1), std::vector<std::string>{"a=first"});
  CHECK_EQ(Made(history, 2), std::vector<std::string>{"a=first"});  // b: between the passes
  CHECK_EQ(Made(history, 3), std::vector<std::string>{"a=first", "c=second"});
}

}  // namespace
}  // namespace strata
