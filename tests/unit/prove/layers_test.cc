#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/rewriter.h"
#include "passes/placement/lowering/lower.h"
#include "passes/placement/place.h"
#include "prove/layers/fewer_layers.h"
#include "prove/prove_pass.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::OrDie;
using testing::ParseBody;

constexpr int kLayers = 6;

/// h_i = relu(h_(i-1) w_i), and its gradients. `odd`: the layer that squares instead; -1: none.
std::string StepText(int odd = -1) {
  constexpr std::string_view kType = "f32[8, 8][8, 1]cpu";
  std::string text = "\n";
  const auto add = [&](std::string_view name, std::string_view call, std::string_view tags) {
    text += fmt::format("  {} = {} : {} {{{}}}\n", name, call, kType, tags);
  };
  for (int i = 0; i < kLayers; ++i)
    add(fmt::format("w{}", i), "placeholder",
        fmt::format("module=layers.{0}.a +fqn='layers.{0}.a.weight' +input='parameter'", i));
  add("h", "placeholder", "+fqn='x' +input='batch'");
  std::string h = "h";
  for (int i = 0; i < kLayers; ++i) {
    const std::string tags = fmt::format("forward module=layers.{}.a", i);
    add(fmt::format("m{}", i), fmt::format("aten.mm.default({}, w{})", h, i), tags);
    add(fmt::format("h{}", i),
        i == odd ? fmt::format("aten.mul.Tensor(m{0}, m{0})", i)
                 : fmt::format("aten.relu.default(m{})", i),
        tags);
    h = fmt::format("h{}", i);
  }
  text += fmt::format("  loss = aten.sum.default({}) : f32[][]cpu {{loss module=loss}}\n", h);
  std::string g = h, gradients;
  for (int i = kLayers - 1; i >= 0; --i) {
    const std::string tags = fmt::format("backward module=layers.{}.a", i);
    const std::string input = i == 0 ? "h" : fmt::format("h{}", i - 1);
    add(fmt::format("d{}", i), fmt::format("aten.threshold_backward.default({}, h{}, 0)", g, i),
        tags);
    text += fmt::format("  t{} = aten.t.default({}) : f32[8, 8][1, 8]cpu ~{} {{{}}}\n", i, input,
                        input, tags);
    text +=
        fmt::format("  s{0} = aten.t.default(w{0}) : f32[8, 8][1, 8]cpu ~w{0} {{{1}}}\n", i, tags);
    add(fmt::format("gw{}", i), fmt::format("aten.mm.default(t{0}, d{0})", i), tags);
    add(fmt::format("g{}", i), fmt::format("aten.mm.default(d{0}, s{0})", i), tags);
    g = fmt::format("g{}", i);
    gradients = fmt::format(", gw{}", i) + gradients;
  }
  return text + fmt::format("  output([loss{}])\n", gradients);
}

/// The placed step, and what the ranks of a mesh run.
struct Lowering {
  std::unique_ptr<Module> placed, lowered;
};
Lowering Lower(const std::string& text) {
  Lowering made;
  made.placed = ParseBody(text);
  OrDie(Place({.mesh = "fsdp=2", .plan = ""}).Run(*made.placed));
  made.lowered = made.placed->Clone();
  OrDie(LowerPlacements().Run(*made.lowered));
  return made;
}

Proof ProofOfLayers(const Lowering& lowering) {
  return ProvePass(*lowering.placed->FindGraph("g"), *lowering.lowered->FindGraph("g"),
                   {.stable_ids = true, .max_calls = 0});
}

TEST_CASE("layers that are the same are evaluated once") {
  const Lowering lowering = Lower(StepText());
  const Proof proof = ProofOfLayers(lowering);
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(proof.layers, kLayers);
  CHECK_GE(proof.layers_left_out, kLayers - 3);
  const Proof whole = ProvePass(*lowering.placed->FindGraph("g"), *lowering.lowered->FindGraph("g"),
                                {.stable_ids = true});
  CHECK_EQ(whole.layers_left_out, 0);
  CHECK_LT(proof.evaluations, whole.evaluations);
}

TEST_CASE("layers are the same if they read what the pass made of values of others") {
  const Lowering lowering = Lower(StepText());
  Graph& after = *lowering.lowered->FindGraph("g");
  Rewriter rewriter(after);
  for (int i = 1; i < kLayers; ++i) {
    const NodeId h = NodeNamed(after, fmt::format("h{}", i - 1)),
                 m = NodeNamed(after, fmt::format("m{}", i));
    rewriter.SetCursorAfter(h);
    const ValueId copy =
        after.result(rewriter.Create("aten.clone.default", {Arg(after.result(h))}, From{h}));
    rewriter.SetType(copy, after.value(after.result(h)).type);
    rewriter.SetSlot(m, after.node(m).args_begin, Arg(copy));
    REQUIRE_EQ(after.node(after.value(copy).def).module, after.node(h).module);
  }
  const Proof proof = ProofOfLayers(lowering);
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_GE(proof.layers_left_out, kLayers - 3);
  // One that is computed in another way makes the layer another one, and is found.
  const ValueId read = after.operands(NodeNamed(after, "m3"))[0];
  Rewriter(after).SetOp(after.value(read).def, "aten.neg.default");
  CHECK_EQ(ProofOfLayers(lowering).verdict, Verdict::kDiffers);
}

TEST_CASE("a layer of another program is evaluated, too") {
  const Lowering lowering = Lower(StepText(4));
  const auto fewer =
      WithoutEqualLayers(*lowering.placed->FindGraph("g"), *lowering.lowered->FindGraph("g"));
  REQUIRE(fewer);
  CHECK(NodeNamed(*fewer->pair.after, "m4").valid());
  CHECK_EQ(ProofOfLayers(lowering).verdict, Verdict::kProven);
}

TEST_CASE("a bug in any layer is found where it is, and so is one in all layers") {
  for (int i = 0; i < kLayers; ++i) {
    CAPTURE(i);
    const Lowering lowering = Lower(StepText());
    Graph& after = *lowering.lowered->FindGraph("g");
    Rewriter(after).SetOp(NodeNamed(after, fmt::format("h{}", i)), "aten.neg.default");
    const Proof proof = ProofOfLayers(lowering);
    CHECK_EQ(proof.verdict, Verdict::kDiffers);
    REQUIRE_FALSE(proof.findings.empty());
    CHECK_EQ(proof.findings[0].node, fmt::format("h{}", i));
  }
  const Lowering lowering = Lower(StepText());
  Graph& after = *lowering.lowered->FindGraph("g");
  for (int i = 0; i < kLayers; ++i)
    Rewriter(after).SetOp(NodeNamed(after, fmt::format("h{}", i)), "aten.neg.default");
  CHECK_EQ(ProofOfLayers(lowering).verdict, Verdict::kDiffers);
}

/// Every layer's parameter is scaled in place, by a number that was written in place before.
/// `late`: the number is written again between the layers.
std::unique_ptr<Module> UpdateModule(bool late = false) {
  std::string text = "\n";
  for (int i = 0; i < kLayers; ++i) {
    text += fmt::format(
        "  w{0} = placeholder : f32[8, 8][8, 1]cpu {{module=layers.{0}.a +input='parameter'}}\n",
        i);
  }
  text +=
      "  s = placeholder : f32[][]cpu\n"
      "  t = aten.neg.default(s) : f32[][]cpu\n"
      "  u = aten.add_.Scalar(t, 3) : f32[][]cpu ~t\n";
  for (int i = 0; i < kLayers; ++i) {
    if (late && i == 3) text += "  v = aten.add_.Scalar(u, 1) : f32[][]cpu ~t\n";
    text += fmt::format(
        "  m{0} = aten.mul_.Tensor(w{0}, u) : f32[8, 8][8, 1]cpu ~w{0} {{module=layers.{0}.a}}\n",
        i);
  }
  return ParseBody(text + "  output([u])\n");
}

TEST_CASE("layers are left out that read memory which was written before all of them") {
  const auto module = UpdateModule();
  const Graph& graph = *module->FindGraph("g");
  const auto fewer = WithoutEqualLayers(graph, graph);
  REQUIRE(fewer);
  CHECK_EQ(fewer->left_out, kLayers - 1);
  for (int i = 0; i < kLayers; ++i) {
    const auto wrong = module->Clone();
    Graph& after = *wrong->FindGraph("g");
    Rewriter(after).SetOp(NodeNamed(after, fmt::format("m{}", i)), "aten.add_.Tensor");
    CHECK_EQ(ProvePass(graph, after, {.stable_ids = true, .max_calls = 0}).verdict,
             Verdict::kDiffers);
  }
}

TEST_CASE("layers stay that read memory which is written between them") {
  const auto module = UpdateModule(true);
  const Graph& graph = *module->FindGraph("g");
  CHECK_FALSE(WithoutEqualLayers(graph, graph));
}

TEST_CASE("a gradient that another layer's operand makes is found") {
  const Lowering lowering = Lower(StepText());
  Graph& after = *lowering.lowered->FindGraph("g");
  // The gradient of layer 3 from the gradient of layer 5: the same types, another value.
  const NodeId product = NodeNamed(after, "d2");
  std::vector<Arg> args(after.args(product).begin(), after.args(product).end());
  args[0] = Arg(after.result(NodeNamed(after, "g5")));
  Rewriter(after).SetArgs(product, args, {});
  const Proof proof = ProofOfLayers(lowering);
  CHECK_EQ(proof.verdict, Verdict::kDiffers);
  REQUIRE_FALSE(proof.findings.empty());
  CHECK_EQ(proof.findings[0].node, "d2");
}

}  // namespace
}  // namespace strata::prove
