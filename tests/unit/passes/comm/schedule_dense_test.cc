#include "passes/comm/schedule_dense.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "ir/verify.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::BodyOf;
using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;

/// A toy graph, line by line: `AG0 = gather p0`, with direction and module at the end.
std::string Call(std::string_view name, std::string_view op, std::string_view args,
                 std::string_view meta) {
  const std::string braces = meta.empty() ? "" : fmt::format(" {{{}}}", meta);
  return fmt::format("  {} = {}({}){}\n", name, op, args, braces);
}
std::string Gather(std::string_view name, std::string_view of, std::string_view meta) {
  return Call(name, "_c10d_functional.all_gather_into_tensor.default",
              fmt::format("{}, 2, 'fsdp'", of), meta);
}
std::string Scatter(std::string_view name, std::string_view of, std::string_view meta) {
  return Call(name, "_c10d_functional.reduce_scatter_tensor.default",
              fmt::format("{}, 'sum', 2, 'fsdp'", of), meta);
}
std::string Wait(std::string_view name, std::string_view of, std::string_view meta) {
  return Call(name, "_c10d_functional.wait_tensor.default", of, meta);
}
std::string Mm(std::string_view name, std::string_view args, std::string_view meta) {
  return Call(name, "aten.mm.default", args, meta);
}
/// Metadata of a collective of a bucket.
std::string Of(std::string_view phase, std::string_view bucket) {
  return fmt::format("{} +fsdp_bucket='{}'", phase, bucket);
}
std::string At(std::string_view phase, std::string_view module) {
  return fmt::format("{} module={}", phase, module);
}

struct Scheduled {
  std::string text;
  std::map<std::string, size_t, std::less<>> line;

  bool Ordered(const std::vector<std::string>& names) const {
    for (const std::string& name : names)
      REQUIRE_MESSAGE(line.contains(name), name);
    return std::ranges::is_sorted(names, {}, [&](const std::string& n) { return line.at(n); });
  }
};

Scheduled LinesOf(const Module& module) {
  Scheduled scheduled{.text = BodyOf(module), .line = {}};
  size_t number = 0;
  for (const NodeId node : module.FindGraph("g")->nodes())
    scheduled.line.emplace(module.FindGraph("g")->name(node), number++);
  return scheduled;
}

Scheduled After(const std::string& body, bool strict = false) {
  auto module = ParseBody("\n" + body);
  OrDie(ScheduleDenseRegions({.strict = strict, .plan = ""}).Run(*module));
  CHECK_OK(Verify(*module));
  return LinesOf(*module);
}

std::string ErrorOf(const std::string& body) {
  return MessageOf(ScheduleDenseRegions({.strict = true, .plan = ""}).Run(*ParseBody("\n" + body)));
}

const std::string kP0 = "  p0 = placeholder\n", kX = "  x = placeholder\n";

TEST_CASE("DR-1: one collective of each kind for each bucket passes the strict check") {
  const std::string body = kP0 + kX + Gather("A0", "p0", Of("forward", "layers.0")) +
                           Wait("W0", "A0", Of("forward", "layers.0")) +
                           Mm("f0", "x, W0", At("forward", "layers.0")) +
                           Gather("B0", "p0", Of("backward", "layers.0")) +
                           Wait("V0", "B0", Of("backward", "layers.0")) +
                           Mm("b0", "f0, V0", At("backward", "layers.0")) +
                           Scatter("R0", "b0", Of("backward", "layers.0")) +
                           Wait("S0", "R0", Of("backward", "layers.0")) + "  output([S0])\n";
  CHECK_EQ(After(body, true).text, BodyOf(*ParseBody("\n" + body)));
}

TEST_CASE("DR-2: a missing collective is an error that names its layer") {
  const std::string head = kP0 + kX;
  const std::string use = Mm("f0", "x, W0", At("forward", "layers.0"));
  CHECK_EQ(ErrorOf(head + Gather("A0", "p0", Of("forward", "layers.0")) +
                   Wait("W0", "A0", Of("forward", "layers.0")) + use + "  output([f0])\n"),
           "layers without one collective for each bucket and direction: run "
           "bucket-transformer-blocks first, with parameters gathered again in backward:\n"
           "  layer 0: 1 all-gathers in forward, 0 in backward, 0 reduce-scatters; expected 1 of "
           "each");
  CHECK_NE(ErrorOf(head + Gather("A0", "p0", Of("forward", "tok_embeddings")) +
                   Wait("W0", "A0", Of("forward", "tok_embeddings")) + use + "  output([f0])\n")
               .find("layer 0: 0 all-gathers"),
           std::string::npos);
}

TEST_CASE("DR-3: the first gather of forward, the last of backward and the last scatter stay") {
  const std::string body =
      kP0 + "  p1 = placeholder\n" + kX + Gather("A0", "p0", Of("forward", "layers.0")) +
      Wait("W0", "A0", Of("forward", "layers.0")) + Mm("f0", "x, W0", At("forward", "layers.0")) +
      Mm("f1", "f0, x", At("forward", "layers.1")) +
      Gather("B1", "p1", Of("backward", "layers.1")) +
      Wait("V1", "B1", Of("backward", "layers.1")) +
      Mm("b1", "f1, V1", At("backward", "layers.1")) +
      Mm("b0", "b1, x", At("backward", "layers.0")) +
      Scatter("R0", "b0", Of("backward", "layers.0")) +
      Wait("S0", "R0", Of("backward", "layers.0")) + "  output([S0])\n";
  CHECK_EQ(After(body).text, BodyOf(*ParseBody("\n" + body)));
}

TEST_CASE("DR-4: collectives of norm and lm_head go into the last layer, and the reverse") {
  const Scheduled after = After(
      kP0 + "  pt = placeholder\n" + kX + Mm("f0", "x, x", At("forward", "layers.0")) +
      Gather("At", "pt", Of("forward", "norm,lm_head")) +
      Wait("Wt", "At", Of("forward", "norm,lm_head")) +
      Mm("ft", "f0, Wt", At("forward", "lm_head")) + Mm("bt", "ft, x", At("backward", "lm_head")) +
      Scatter("Rt", "bt", Of("backward", "norm,lm_head")) +
      Wait("St", "Rt", Of("backward", "norm,lm_head")) +
      Gather("B0", "p0", Of("backward", "layers.0")) +
      Wait("V0", "B0", Of("backward", "layers.0")) +
      Mm("b0", "bt, V0", At("backward", "layers.0")) + "  output([b0, St])\n");
  CHECK(after.Ordered({"At", "f0", "Wt"}));
  CHECK(after.Ordered({"B0", "bt", "V0"}));
  CHECK(after.Ordered({"bt", "Rt", "b0", "St"}));
}

/// Backward of three layers.
std::string ThreeLayers(std::string_view d1_module = "layers.1.attention") {
  return kP0 + kX + Gather("A0", "p0", Of("backward", "layers.0")) +
         Mm("d2", "x, x", At("backward", "layers.2.attention")) +
         Mm("d1", "d2, x", At("backward", d1_module)) +
         Scatter("R2", "d2", Of("backward", "layers.2")) +
         Wait("W2", "R2", Of("backward", "layers.2")) +
         Mm("d0", "d1, x", At("backward", "layers.0.attention")) +
         Wait("W0", "A0", Of("backward", "layers.0")) +
         Mm("u", "d0, W0", At("backward", "layers.0.ffn")) + "  output([u, W2])\n";
}

TEST_CASE("DR-5: in backward gathers wait for the layer after, scatters go into the layer before") {
  const Scheduled after = After(ThreeLayers());
  CHECK_EQ(after.text, R"(
  p0 = placeholder
  x = placeholder
  d2 = aten.mm.default(x, x)
  A0 = _c10d_functional.all_gather_into_tensor.default(p0, 2, 'fsdp')
  R2 = _c10d_functional.reduce_scatter_tensor.default(d2, 'sum', 2, 'fsdp')
  d1 = aten.mm.default(d2, x)
  d0 = aten.mm.default(d1, x)
  W0 = _c10d_functional.wait_tensor.default(A0)
  u = aten.mm.default(d0, W0)
  W2 = _c10d_functional.wait_tensor.default(R2)
  output([u, W2])
)");
}

TEST_CASE("DR-6: a gather that forward reads is of forward though backward follows") {
  const Scheduled after =
      After("  p1 = placeholder\n" + kX + Mm("dense0", "x, x", At("forward", "layers.0")) +
            Gather("A1", "p1", "") + Wait("W1", "A1", "") +
            Mm("f1", "dense0, W1", At("forward", "layers.1")) +
            Mm("b1", "f1, x", At("backward", "layers.1")) + "  output([b1])\n");
  CHECK(after.Ordered({"A1", "dense0", "W1"}));
}

TEST_CASE("DR-7: a launch goes before computation, not before what unpacks the bucket before") {
  const Scheduled after = After(
      kP0 + "  p1 = placeholder\n" + kX + Gather("A0", "p0", Of("forward", "layers.0")) +
      Wait("W0", "A0", Of("forward", "layers.0")) +
      Call("view0", "aten.view.default", "W0, [4]", At("forward", "layers.0")) +
      Call("dense0", "aten.relu.default", "view0", At("forward", "layers.0")) +
      Gather("A1", "p1", Of("forward", "layers.1")) + Wait("W1", "A1", Of("forward", "layers.1")) +
      Mm("f1", "dense0, W1", At("forward", "layers.1")) + "  output([f1])\n");
  CHECK(after.Ordered({"W0", "view0", "A1", "dense0", "W1"}));
}

TEST_CASE("DR-8: a gather for a recomputed node is of backward") {
  const Scheduled after =
      After(kP0 + kX + Mm("d2", "x, x", At("backward", "layers.2.attention")) +
            Mm("d1", "d2, x", At("backward", "layers.1.attention")) + Gather("A0", "p0", "") +
            Wait("W0", "A0", "") + Mm("m_recomputed", "d1, W0", At("forward", "layers.0")) +
            "  output([m_recomputed])\n");
  CHECK(after.Ordered({"d2", "A0", "d1"}));
}

TEST_CASE("DR-9: a scatter follows the cast that it reads") {
  const Scheduled after = After(
      kX + Mm("d1", "x, x", At("backward", "layers.1")) +
      Mm("d0", "x, d1", At("backward", "layers.0")) +
      Call("cast", "aten._to_copy.default", "d1, dtype=torch.float32", At("backward", "layers.1")) +
      Mm("e0", "x, d0", At("backward", "layers.0")) +
      Mm("f0", "x, e0", At("backward", "layers.0")) +
      Scatter("R1", "cast", Of("backward", "layers.1")) +
      Wait("W1", "R1", Of("backward", "layers.1")) + "  output([f0, W1])\n");
  CHECK(after.Ordered({"cast", "R1", "e0", "f0", "W1"}));
}

TEST_CASE("DR-10: waits of scatters stand before the output, with what takes them apart") {
  const Scheduled after =
      After(kX + Mm("d0", "x, x", At("backward", "layers.0")) +
            Scatter("R0", "d0", Of("backward", "layers.0")) +
            Wait("W0", "R0", Of("backward", "layers.0")) +
            "  (a, b) = aten.split_with_sizes.default(W0, [1, 1]) as split\n" +
            Call("c", "aten.alias.default", "b", "backward") +
            Mm("last", "d0, x", At("backward", "tok_embeddings")) + "  output([last, a, c])\n");
  CHECK(after.Ordered({"d0", "R0", "last", "W0", "split", "c"}));
}

TEST_CASE("DR-11: gradients that are added up are waited for at the end, in order") {
  const Scheduled after =
      After(kX + Mm("d1", "x, x", At("backward", "layers.1")) +
            Scatter("Ra", "d1", Of("backward", "layers.1")) +
            Wait("Wa", "Ra", Of("backward", "layers.1")) +
            Call("total", "aten.detach.default", "Wa", "backward") +
            Mm("e1", "x, d1", At("backward", "layers.1")) +
            Scatter("Rb", "e1", Of("backward", "layers.1")) +
            Wait("Wb", "Rb", Of("backward", "layers.1")) +
            Call("sum", "aten.add_.Tensor", "total, Wb", "backward") +
            Call("grad", "aten.detach.default", "sum", "backward") +
            Mm("dense0", "x, e1", At("backward", "layers.0")) + "  output([dense0, grad])\n");
  CHECK(after.Ordered({"dense0", "Wa", "total", "Wb", "sum", "grad"}));
}

TEST_CASE("DR-12: in a layer with experts a scatter goes into attention, after the exchange") {
  const std::string exchange = Call("E", "_c10d_functional.all_to_all_single.default",
                                    "d2, [1, 1], [1, 1], 'ep'", At("backward", "layers.1.moe")) +
                               Wait("WE", "E", At("backward", "layers.1.moe")) +
                               Mm("expert", "WE, x", At("backward", "layers.1.moe.experts")) +
                               Mm("bare", "expert, x", At("backward", "layers.1")) +
                               Call("fnorm", "aten._fused_rms_norm_backward.default", "bare",
                                    At("backward", "layers.1.ffn_norm")) +
                               Mm("attention", "fnorm, x", At("backward", "layers.1.attention.wo"));
  const Scheduled after = After(kX + Mm("d2", "x, x", At("backward", "layers.2.attention")) +
                                Scatter("R2", "d2", Of("backward", "layers.2")) +
                                Wait("W2", "R2", Of("backward", "layers.2")) + exchange +
                                "  output([attention, W2])\n");
  CHECK(after.Ordered({"WE", "expert", "bare", "fnorm", "R2", "attention", "W2"}));
}

TEST_CASE("DR-13: the router is no place for a launch") {
  const Scheduled after = After(
      "  p1 = placeholder\n" + kX + Mm("router", "x, x", At("forward", "layers.0.moe.router")) +
      Mm("attention", "router, x", At("forward", "layers.0.attention")) +
      Gather("A1", "p1", Of("forward", "layers.1")) + Wait("W1", "A1", Of("forward", "layers.1")) +
      Mm("f1", "attention, W1", At("forward", "layers.1.attention")) + "  output([f1])\n");
  CHECK(after.Ordered({"router", "A1", "attention", "W1"}));
}

TEST_CASE("DR-14: what cannot move stays unless the pass is strict") {
  // The region of layer 0 ends before the gradient of layer 1 is there.
  const std::string body = kX + Mm("d0", "x, x", At("backward", "layers.0")) +
                           Mm("d1", "x, d0", At("backward", "layers.1")) +
                           Scatter("R1", "d1", Of("backward", "layers.1")) +
                           Wait("W1", "R1", Of("backward", "layers.1")) + "  output([W1])\n";
  CHECK_EQ(After(body).text, BodyOf(*ParseBody("\n" + body)));
}

TEST_CASE("schedule-dense-regions: a bucket of two layers is an error") {
  const std::string body = kP0 + kX + Gather("A0", "p0", Of("forward", "layers.0,layers.1")) +
                           Wait("W0", "A0", Of("forward", "layers.0,layers.1")) +
                           Mm("f1", "x, W0", At("forward", "layers.1")) + "  output([f1])\n";
  CHECK_EQ(ErrorOf(body),
           "a bucket spans layers 0 and 1: layers.0,layers.1: give each layer buckets of its own");
}

}  // namespace
}  // namespace strata
