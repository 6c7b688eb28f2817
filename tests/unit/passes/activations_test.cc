#include "passes/memory/activations.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/fingerprint.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::ParseBody;

/// `layers 0 1: relu RECOMPUTE 64; … = 64`, a line per group.
std::string Groups(std::string_view body) {
  const auto module = ParseBody(body);
  const Graph& graph = *module->FindGraph("g");
  const Fingerprint before = FingerprintOf(graph, FingerprintScope::kEverything);
  std::string text = "\n";
  for (const ActivationGroup& group : GroupByLayer(graph, ListActivations(graph))) {
    text += fmt::format("layers {}:", fmt::join(group.layers, " "));
    for (const Activation& activation : group.activations) {
      text += fmt::format(" {} {} {};", graph.value_name(activation.value), activation.policy,
                          activation.bytes.value_or(-1));
    }
    text += fmt::format(" = {}\n", group.bytes);
  }
  CHECK(FingerprintOf(graph, FingerprintScope::kEverything) == before);  // LG-5
  return text;
}

std::string Layer(int number, std::string_view dtype = "f32") {
  return fmt::format(
      "  a{0} = aten.relu.default(x) : {1}[4, 4][4, 1]cpu {{forward module=layers.{0}.norm "
      "+recompute='PREFER_RECOMPUTE'}}\n"
      "  b{0} = aten.mul.Tensor(a{0}, x) : {1}[4, 4][4, 1]cpu {{backward "
      "module=layers.{0}.norm}}\n",
      number, dtype);
}

TEST_CASE("LG-1, LG-2: layers that are alike are one group") {
  std::string body = "  x = placeholder : f32[4, 4][4, 1]cpu\n";
  for (int layer = 0; layer < 32; ++layer)
    body += Layer(layer, layer == 7 ? "bf16" : "f32");
  const std::string groups = Groups(body + "  output([b31])\n");
  CHECK(groups.starts_with("\nlayers 0 1 2 3 4 5 6 8 9 "));
  CHECK(groups.ends_with(" 30 31: a0 RECOMPUTE 64; = 64\nlayers 7: a7 RECOMPUTE 32; = 32\n"));
}

TEST_CASE("LG-4: labels tell the tag; results without readers in backward are not listed") {
  CHECK_EQ(Groups(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  a = aten.mm.default(x, x) : f32[4, 4][4, 1]cpu {forward +recompute='MUST_SAVE'}
  b = aten.relu.default(a) : f32[4, 4][4, 1]cpu {forward +recompute='MUST_RECOMPUTE'}
  c = aten.neg.default(b) : f32[4, 4][4, 1]cpu {forward module=lm_head}
  d = aten.neg.default(c) : f32[4, 4][4, 1]cpu {forward}
  g = aten.mul.Tensor(a, b) : f32[4, 4][4, 1]cpu {backward}
  h = aten.mul.Tensor(g, c) : f32[4, 4][4, 1]cpu {backward}
  output([d, h])
)"),
           "\nlayers : a SAVE 64; b RECOMPUTE! 64; c SAVE* 64; = 192\n");
}

TEST_CASE("LG-3: unknown sizes count as nothing, storages once, waits as their collective") {
  const auto module = ParseBody(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  r = _c10d_functional.all_gather_into_tensor.default(x, 2, 'fsdp') : f32[8, 4][4, 1]cpu {forward}
  w = _c10d_functional.wait_tensor.default(r) : f32[8, 4][4, 1]cpu {forward}
  t = aten.t.default(w) : f32[4, 8][1, 4]cpu ~w {forward}
  u = aten.nonzero.default(x) {forward}
  g = aten.mm.default(w, t) : f32[8, 8][8, 1]cpu {backward}
  h = aten.index.Tensor(g, [u]) : f32[8, 8][8, 1]cpu {backward}
  output([h])
)");
  const Graph& graph = *module->FindGraph("g");
  const std::vector<Activation> activations = ListActivations(graph);
  REQUIRE_EQ(activations.size(), 3);
  CHECK_EQ(activations[0].op, "_c10d_functional.all_gather_into_tensor.default");
  CHECK_EQ(activations[1].owner, activations[0].value);
  CHECK_FALSE(activations[2].bytes.has_value());
  CHECK_EQ(GroupByLayer(graph, activations)[0].bytes, 128);
}

}  // namespace
}  // namespace strata
