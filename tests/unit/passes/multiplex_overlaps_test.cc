#include "passes/pipeline/multiplex_overlaps.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "passes/pipeline/slots.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::ParseOrDie;

/// Both parts have nodes of the same names.
constexpr std::string_view kParts = R"(graph %'stage0.forward'
  w = placeholder : f32[2, 2][2, 1]cpu {+slot='input w' +fqn='w'}
  x = placeholder : f32[3, 2][2, 1]cpu {+slot='input x' +fqn='x'}
  t = aten.t.default(w) : f32[2, 2][1, 2]cpu ~w
  y = aten.mm.default(x, t) : f32[3, 2][2, 1]cpu
  output([y, x])
graph %'stage3.backward'
  w = placeholder : f32[2, 2][2, 1]cpu {+slot='input v' +fqn='v'}
  h = placeholder : f32[3, 2][2, 1]cpu {+slot='saved 0'}
  t = aten.mm.default(h, w) : f32[3, 2][2, 1]cpu
  (m, i) = aten.max.dim(t, 1) as max_1 : (f32[3][1]cpu, i64[3][1]cpu)
  output([None, t, m])
)";

std::unique_ptr<Module> Parts() {
  auto module = ParseOrDie(kParts);
  using Kind = StageSlot::Kind;
  Rewriter forward(*module->FindGraph("stage0.forward"));
  SetOutputSlots(forward, {{Kind::kActivation, "0"}, {Kind::kSaved, "0"}});
  Rewriter backward(*module->FindGraph("stage3.backward"));
  SetOutputSlots(
      backward,
      {{Kind::kParameterGradient, "u"}, {Kind::kParameterGradient, "v"}, {Kind::kGradient, "0"}});
  return module;
}

TEST_CASE("GR-22: inputs, nodes and outputs of the backward stand before those of the forward") {
  const auto module = Parts();
  CHECK_EQ(OrDie(MultiplexOverlaps({.pairs = "0-3"}).Run(*module)), Changed::kYes);
  CHECK_EQ(OrDie(MultiplexOverlaps({.pairs = "0-3"}).Run(*module)), Changed::kNo);
  CHECK_OK(Verify(*module));
  const Graph& graph = *module->FindGraph(OverlapGraphName(0, 3));
  const std::string text = PrintText(graph, {.types = false, .metadata = false});
  CHECK_EQ(text.substr(text.find('\n')), R"(
  bw_w = placeholder
  bw_h = placeholder
  w = placeholder
  x = placeholder
  bw_t = aten.mm.default(bw_h, bw_w)
  (bw_m, bw_i) = aten.max.dim(bw_t, 1) as bw_max_1
  t = aten.t.default(w)
  y = aten.mm.default(x, t)
  output([None, bw_t, bw_m, y, x])
)");
  std::string slots;
  for (const StageSlot& slot : OrDie(StageSlotsOf(graph)).outputs)
    slots += ToString(slot) + "; ";
  CHECK_EQ(slots, "grad u; grad v; gradient 0; activation 0; saved 0; ");
}

TEST_CASE("GR-25: each node comes from its node of the stage") {
  const auto module = Parts();
  OrDie(MultiplexOverlaps({.pairs = "0-3"}).Run(*module));
  std::map<StableId, StableId> from;
  for (const Provenance& record : module->provenance())
    if (record.from.size() == 1) from[record.node] = record.from[0];
  const Graph& graph = *module->FindGraph("overlap.F0.B3");
  const auto origin = [&](std::string_view node) {
    return from.at(graph.node(testing::NodeNamed(graph, node)).stable_id);
  };
  const Graph &forward = *module->FindGraph("stage0.forward"),
              &backward = *module->FindGraph("stage3.backward");
  CHECK_EQ(origin("t"), forward.node(testing::NodeNamed(forward, "t")).stable_id);
  CHECK_EQ(origin("bw_t"), backward.node(testing::NodeNamed(backward, "t")).stable_id);
}

TEST_CASE("GR-14: pairs of other forms and stages that are not split are errors") {
  const auto error = [](std::string pairs) {
    const auto module = Parts();
    return MessageOf(MultiplexOverlaps({.pairs = std::move(pairs)}).Run(*module));
  };
  CHECK_EQ(error("0-3;"),
           "not a pair of stages: '': multiplex-overlaps: write forward and backward, as in "
           "0-3;3-0");
  CHECK_EQ(error("0-3x"),
           "not a pair of stages: '0-3x': multiplex-overlaps: write forward and backward, as in "
           "0-3;3-0");
  CHECK_EQ(error("1-3"),
           "no graph 'stage1.forward': multiplex-overlaps: take stages that split-backward split");
  CHECK_EQ(error("0-2"),
           "no graph 'stage2.backward': multiplex-overlaps: take stages that split-backward split");
}

}  // namespace
}  // namespace strata
