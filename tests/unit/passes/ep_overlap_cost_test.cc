#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/expert/ep_overlap.h"
#include "passes/simulate/timeline.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/unit/passes/scheduled_chunks.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::MoeForward;
using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;
using testing::Scheduled;

/// Layers of experts in two chunks that are joined and split again between the layers.
std::string JoinedLayers(int num_layers) {
  std::string text = "\n";
  for (int chunk : {0, 1})
    text += fmt::format("  h{} = placeholder : bf16[4096, 512][512, 1]cuda:0\n", chunk);
  text += "  w = placeholder : bf16[512, 512][512, 1]cuda:0\n";
  std::string last[] = {"h0", "h1"};
  constexpr std::string_view kPart = "bf16[4096, 512][512, 1]cuda:0",
                             kWhole = "bf16[8192, 512][512, 1]cuda:0";
  for (int layer = 0; layer < num_layers; ++layer) {
    const auto add = [&](int chunk, std::string_view name, std::string_view call,
                         std::string_view more = "") {
      text += fmt::format(
          "  {0}{1}_{2} = {3} : {4} {{forward module=layers.{1} +chunk_id='{2}' "
          "+chunked_region_fqn='layers.{1}' +chunked_region_role='body'{5}}}\n",
          name, layer, chunk, call, kPart, more);
    };
    for (int chunk : {0, 1}) {
      const auto own = [&](std::string_view name) {
        return fmt::format("{}{}_{}", name, layer, chunk);
      };
      add(chunk, "router", fmt::format("aten.mm.default({}, w)", last[chunk]));
      for (const std::string label : {"dispatch", "combine"}) {
        const bool is_first = label == "dispatch";
        add(chunk, label,
            fmt::format("_c10d_functional.all_to_all_single.default({}, [], [], 'ep')",
                        own(is_first ? "router" : "experts")),
            fmt::format(" +EP_token_exchange='{}'", label));
        add(chunk, is_first ? "arrived" : "back",
            fmt::format("_c10d_functional.wait_tensor.default({})", own(label)));
        if (is_first) add(chunk, "experts", fmt::format("aten.mm.default({}, w)", own("arrived")));
      }
      last[chunk] = own("back");
    }
    if (layer + 1 == num_layers) break;
    const auto plumbing = [&](std::string_view role, int of) {
      return fmt::format(
          "{{forward module=layers +chunked_region_fqn='layers.{}' "
          "+chunked_region_role='{}'}}",
          of, role);
    };
    text += fmt::format("  cat{0} = aten.cat.default([{1}, {2}], 0) : {3} {4}\n", layer, last[0],
                        last[1], kWhole, plumbing("materialization", layer));
    text += fmt::format(
        "  (part{0}_0, part{0}_1) = aten.split_with_sizes.default(cat{0}, [4096, 4096], 0) as "
        "split{0} : ({1}, {1}@(2097152)) ~(cat{0}, cat{0}) {2}\n",
        layer, kPart, plumbing("split_boundary", layer + 1));
    for (int chunk : {0, 1})
      last[chunk] = fmt::format("part{}_{}", layer, chunk);
  }
  return text + fmt::format("  output([{}, {}])\n", last[0], last[1]);
}

TEST_CASE("by cost, chunks pass from layer to layer, and exchanges hide behind the other chunk") {
  const std::string text = JoinedLayers(3);
  const Topology topology = OrDie(Topology::Load("h100"));
  const auto exposed = [&](const Graph& graph) {
    const NodeCost cost = OrDie(NodeCost::Make(topology, graph));
    return OrDie(Simulate(graph, cost)).exposed_us();
  };
  const Scheduled rounds(text, "layers.*", false), by_cost(text, "layers.*", false, "h100");
  CHECK_LT(exposed(by_cost.graph), exposed(rounds.graph));
  for (const NodeId node : by_cost.graph.nodes()) {
    CHECK_NE(by_cost.graph.op(node), "aten.cat.default");
    CHECK_NE(by_cost.graph.op(node), "aten.split_with_sizes.default");
  }
  // The second layer of one chunk is under way before the first layer of the other one has ended.
  CHECK_LT(by_cost.Position("dispatch1_0"), by_cost.Position("back0_1"));
  CHECK_EQ(by_cost.graph.attribute(NodeNamed(by_cost.graph, "back2_1"), "EP_token_exchange_wait"),
           "combine");
}

TEST_CASE("by cost, work that no exchange needs waits for a gap, but not forever") {
  const std::string text = MoeForward();
  const Scheduled scheduled(text, "layers.*.moe", false, "h100");
  CHECK_LT(scheduled.Position("dispatch0"), scheduled.Position("shared0"));
  CHECK_LT(scheduled.Position("dispatch1"), scheduled.Position("shared0"));
  CHECK_LT(scheduled.Position("shared0"), scheduled.Position("dispatch_wait1"));
}

/// Nodes of a layer in two chunks that reads `h0` and `h1`, once in forward, and once more in
/// backward. What backward computes of them needs no gradient, as recomputation does.
std::string RecomputedLayer() {
  std::string text = "\n  w = placeholder : bf16[512, 512][512, 1]cuda:0\n";
  constexpr std::string_view kPart = "bf16[4096, 512][512, 1]cuda:0";
  for (int chunk : {0, 1})
    text += fmt::format("  h{} = placeholder : {}\n", chunk, kPart);
  for (const std::string_view phase : {"forward", "backward"}) {
    for (int chunk : {0, 1}) {
      const auto add = [&](std::string_view name, std::string_view call,
                           std::string_view more = "") {
        text += fmt::format(
            "  {0}_{1}{2} = {3} : {4} {{{0} module=layers.0 +chunk_id='{2}' "
            "+chunked_region_fqn='layers.0' +chunked_region_role='body'{5}}}\n",
            phase, name, chunk, call, kPart, more);
      };
      add("router", fmt::format("aten.mm.default(h{}, w)", chunk));
      add("sent",
          fmt::format("_c10d_functional.all_to_all_single.default({}_router{}, [], [], 'ep')",
                      phase, chunk),
          " +EP_token_exchange='dispatch'");
      add("arrived", fmt::format("_c10d_functional.wait_tensor.default({}_sent{})", phase, chunk));
      add("experts", fmt::format("aten.mm.default({}_arrived{}, w)", phase, chunk));
    }
  }
  return text +
         "  output([forward_experts0, forward_experts1, backward_experts0, backward_experts1])\n";
}

TEST_CASE("by cost, nothing of backward runs while forward waits for an exchange") {
  const Scheduled scheduled(RecomputedLayer(), "layers.*", false, "h100");
  for (const std::string chunk : {"0", "1"}) {
    for (const std::string other : {"0", "1"}) {
      CHECK_LT(scheduled.Position("forward_experts" + chunk),
               scheduled.Position("backward_router" + other));
    }
  }
}

TEST_CASE("by cost, inputs keep their order: it is that of the arguments") {
  std::string text = JoinedLayers(2);
  const std::string input = "  w = placeholder : bf16[512, 512][512, 1]cuda:0\n";
  text.replace(text.find(input), input.size(),
               "  last = placeholder : bf16[4096, 512][512, 1]cuda:0\n" + input);
  const size_t output = text.rfind("  output([") + std::string_view("  output([").size();
  text.insert(output, "last, ");
  const auto before = ParseBody(text);
  const Scheduled scheduled(text, "layers.*", false, "h100");
  const auto names = [](const Graph& graph) {
    std::vector<std::string> all;
    for (const NodeId node : graph.placeholders())
      all.emplace_back(graph.name(node));
    return all;
  };
  CHECK_EQ(names(scheduled.graph), names(*before->FindGraph("g")));
}

TEST_CASE("a topology that does not exist is an error") {
  EpOverlap::Options options;
  options.topology = "no-such-topology";
  CHECK_NE(MessageOf(EpOverlap(options).Run(*ParseBody(MoeForward()))), "");
}

}  // namespace
}  // namespace strata
