#include "cli/render/schedule/timeline_text.h"

#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/topologies.h"

namespace strata::cli {
namespace {

using testing::OrDie;
using testing::ParseBody;

/// `c` needs no collective: in `kLate` nothing runs beside this one, in `kBeside` it does.
constexpr std::string_view kLate = R"(
  x = placeholder : f32[8][1]cpu
  g = _c10d_functional.all_reduce.default(x, 'sum', 'ep') : f32[8][1]cpu
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cpu ~g
  b = aten.relu.default(w) : f32[8][1]cpu
  c = aten.relu.default(x) : f32[8][1]cpu
  output([b, c])
)";
constexpr std::string_view kBeside = R"(
  x = placeholder : f32[8][1]cpu
  g = _c10d_functional.all_reduce.default(x, 'sum', 'ep') : f32[8][1]cpu
  c = aten.relu.default(x) : f32[8][1]cpu
  w = _c10d_functional.wait_tensor.default(g) : f32[8][1]cpu ~g
  b = aten.relu.default(w) : f32[8][1]cpu
  output([b, c])
)";

struct Estimated {
  explicit Estimated(std::string_view body) : module(ParseBody(body)) {
    const NodeCost cost = OrDie(
        NodeCost::Make(OrDie(Topology::Parse(testing::kSlowTopology, "t.toml", "t")), graph()));
    timeline = OrDie(Simulate(graph(), cost));
    bound = OrDie(StepBoundOf(graph(), cost));
  }
  const Graph& graph() const { return *module->FindGraph("g"); }
  SimulatedStep step() const { return {graph(), timeline, bound}; }

  std::unique_ptr<Module> module;
  Timeline timeline;
  StepBound bound;
};

/// The lines before the table of groups.
std::string SummaryOf(const std::string& text) {
  return text.substr(0, text.find("\n\n") + 1);
}

TEST_CASE("timeline text: what an order overlaps is a part of what the best one would") {
  const Estimated late(kLate), beside(kBeside);
  CHECK_EQ(SummaryOf(TimelineText(late.step(), nullptr)),
           "step               0.050 ms\n"
           "at least           0.040 ms\n"
           "computation        0.020 ms\n"
           "collectives        0.030 ms\n"
           "exposed            0.030 ms\n"
           "overlapped            0.0 %\n"
           "of the most           0.0 %\n");
  const SimulatedStep before = late.step();
  CHECK_EQ(SummaryOf(TimelineText(beside.step(), &before)),
           "                     before          after     change\n"
           "step               0.050 ms       0.040 ms    -20.0 %\n"
           "at least           0.040 ms       0.040 ms     +0.0 %\n"
           "computation        0.020 ms       0.020 ms     +0.0 %\n"
           "collectives        0.030 ms       0.030 ms     +0.0 %\n"
           "exposed            0.030 ms       0.020 ms    -33.3 %\n"
           "overlapped            0.0 %         33.3 %\n"
           "of the most           0.0 %        100.0 %\n");
}

TEST_CASE("timeline text: JSON has the bound and the time without overlap") {
  const Estimated beside(kBeside);
  const std::string json = TimelineJson(beside.step(), nullptr, "t");
  CAPTURE(json);
  CHECK(json.find(R"("step_us": 40.000)") != std::string::npos);
  CHECK(json.find(R"("least_us": 40.000)") != std::string::npos);
  CHECK(json.find(R"("serial_us": 50.000)") != std::string::npos);
}

}  // namespace
}  // namespace strata::cli
