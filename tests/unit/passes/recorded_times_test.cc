#include "passes/budget/recorded_times.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/file.h"
#include "passes/budget/budget.h"
#include "passes/budget/live_peak.h"
#include "passes/memory/tags.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

constexpr std::string_view kProfiledBody = R"(
  x = placeholder : f32[64, 64][64, 1]cpu
  n = aten.relu.default(x) : f32[64, 64][64, 1]cpu {forward module=layers.0}
  u = aten.tanh.default(x) : f32[64, 64][64, 1]cpu {forward module=layers.0}
  a = aten.mm.default(n, u) : f32[64, 64][64, 1]cpu {forward module=layers.0}
  s = aten.sigmoid.default(a) : f32[64, 64][64, 1]cpu {forward module=layers.0}
  loss = aten.sum.default(s) : f32[][]cpu {loss module=loss}
  q = aten.sum.default(s) : f32[][]cpu {backward module=layers.0}
  r = aten.mul.Tensor(n, q) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  g = aten.mul.Tensor(r, u) : f32[64, 64][64, 1]cpu {backward module=layers.0}
  output([loss, g])
)";

std::string ProfileText(std::string_view rows) {
  return fmt::format(R"({{"schema": "strata.profile/1", "graph": "g", "steps": 2, "rows": [{}]}})",
                     rows);
}

TEST_CASE("a profile gives microseconds of a step by node; other text is refused") {
  const NodeTimes times = OrDie(ParseProfile(ProfileText(
      R"({"name": "mm", "nodes": 1, "time_ns": 3000, "bytes": 4}, {"name": "t", "time_ns": 0})")));
  CHECK_EQ(times, NodeTimes{{"mm", 1.5}, {"t", 0}});
  for (const std::string_view text : {"", "[]", R"({"schema": "strata.memory/1"})",
                                      R"({"schema": "strata.profile/1", "steps": 0, "rows": []})",
                                      R"({"schema": "strata.profile/1", "steps": 1})"}) {
    CHECK_EQ(MessageOf(ParseProfile(text)),
             "not a profile: write it with strata profile REF --json");
  }
  CHECK_EQ(MessageOf(ParseProfile(ProfileText(R"({"name": "mm"})"))),
           "a row of a profile has no name or time_ns: write it with strata profile REF --json");
}

TEST_CASE("nodes cost what they took; others, and copies to the host, are scaled alike") {
  const auto module = ParseBody(kProfiledBody);
  const Graph& graph = *module->FindGraph("g");
  const MemoryCosts modelled = OrDie(CostsOf(graph, ""));
  MemoryCosts costs = modelled;
  const auto model_of = [&](std::string_view name) {
    return modelled.recompute_us[NodeNamed(graph, name)];
  };
  const double both = 3 * (model_of("n") + model_of("a"));  // three times what the model says
  UseTimes({{"n", both - 1}, {"a", 1}, {"stranger", 7}}, graph, costs);
  CHECK_EQ(costs.recompute_us[NodeNamed(graph, "n")], both - 1);
  CHECK_EQ(costs.recompute_us[NodeNamed(graph, "a")], 1);
  CHECK_EQ(costs.recompute_us[NodeNamed(graph, "s")], doctest::Approx(3 * model_of("s")));
  CHECK_EQ(costs.offload_us_per_byte, doctest::Approx(3 * modelled.offload_us_per_byte));

  MemoryCosts same = modelled;
  UseTimes({{"stranger", 7}}, graph, same);
  CHECK_EQ(same.recompute_us[NodeNamed(graph, "a")], model_of("a"));
}

/// Names of the nodes that a plan with those recorded times gives up.
std::string GivenUp(std::string_view rows) {
  const auto module = ParseBody(kProfiledBody);
  Graph& graph = *module->FindGraph("g");
  Budget::Options options{.bytes = LivePeakBytes(graph) - 1, .offload = false};
  const TemporaryPath folder = OrDie(TemporaryPath::MakeFolder());
  options.times = folder.path() + "/times.json";
  CHECK_OK(WriteFile(options.times, ProfileText(rows)));
  OrDie(Budget(options).Run(*module));
  std::string names;
  for (const NodeId node : graph.nodes())
    if (IsRecomputable(graph, node))
      names += (names.empty() ? "" : " ") + std::string(graph.name(node));
  return names;
}

TEST_CASE("a plan recomputes what the profile says is cheap") {
  CHECK_EQ(GivenUp(R"({"name": "n", "time_ns": 2000}, {"name": "u", "time_ns": 9000})"), "n");
  CHECK_EQ(GivenUp(R"({"name": "n", "time_ns": 9000}, {"name": "u", "time_ns": 2000})"), "u");
  const auto module = ParseBody(kProfiledBody);
  CHECK_EQ(MessageOf(Budget({.bytes = 1 << 20, .times = "/nowhere/times.json"}).Run(*module)),
           "no such file: /nowhere/times.json: check the path");
  const TemporaryPath folder = OrDie(TemporaryPath::MakeFolder());
  const std::string file = folder.path() + "/times.json";
  CHECK_OK(WriteFile(file, "{}"));
  CHECK_EQ(MessageOf(Budget({.bytes = 1 << 20, .times = file}).Run(*module)),
           file + ": not a profile: write it with strata profile REF --json");
}

}  // namespace
}  // namespace strata
