#include "prove/layers/unchanged_calls.h"

#include <functional>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/rewriter.h"
#include "prove/on_ranks.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::ParseBody;
using testing::ValueNamed;

/// A chain of products and functions; every tenth pair of nodes doubles by a sum.
std::string ChainText(int length) {
  std::string text =
      "\n  x = placeholder : f32[4, 4][4, 1]cpu {+fqn='x' +input='batch'}\n"
      "  w = placeholder : f32[4, 4][4, 1]cpu {+fqn='w' +input='parameter'}\n";
  std::string last = "x";
  for (int i = 0; i < length; ++i) {
    const char* call = i % 10 == 9  ? "aten.mul.Tensor({}, 2.0)"
                       : i % 2 == 1 ? "aten.sin.default({})"
                                    : "aten.mm.default({}, w)";
    text +=
        fmt::format("  v{} = {} : f32[4, 4][4, 1]cpu\n", i, fmt::format(fmt::runtime(call), last));
    last = fmt::format("v{}", i);
  }
  return text + fmt::format("  output([{}])\n", last);
}

struct Edited {
  std::unique_ptr<Module> before, after;

  Edited(std::unique_ptr<Module> module, const std::function<void(Rewriter&)>& edit)
      : before(std::move(module)), after(before->Clone()) {
    Rewriter rewriter(*after->FindGraph("g"));
    edit(rewriter);
  }
  Proof Prove() const {
    return ProvePass(*before->FindGraph("g"), *after->FindGraph("g"),
                     {.stable_ids = true, .max_calls = 0});
  }
};

/// v·2 becomes v + v, in `count` places.
void AddInsteadOfDoubling(Rewriter& rewriter, int count) {
  Graph& graph = rewriter.graph();
  for (int i = 0; i < count; ++i) {
    const NodeId old = NodeNamed(graph, fmt::format("v{}", 10 * i + 9));
    const Arg v(ValueNamed(graph, fmt::format("v{}", 10 * i + 8)));
    rewriter.SetOp(old, "aten.add.Tensor");
    const Arg args[] = {v, v};
    rewriter.SetArgs(old, args, {});
  }
}

TEST_CASE("PV-66: of a pass that changed few calls of many, only these are evaluated") {
  const Edited edited(ParseBody(ChainText(2000)),
                      [](Rewriter& rewriter) { AddInsteadOfDoubling(rewriter, 40); });
  const Proof proof = edited.Prove();
  CHECK_EQ(proof.reason, "");
  CHECK(proof.verdict == Verdict::kProven);
  CHECK_EQ(proof.unchanged, 1960);
  CHECK_LE(proof.evaluations, 4 * 40 + 2);
}

TEST_CASE("PV-66: a changed call that computes something else is found in the whole graph") {
  const Edited edited(ParseBody(ChainText(200)), [](Rewriter& rewriter) {
    AddInsteadOfDoubling(rewriter, 10);
    rewriter.SetOp(NodeNamed(rewriter.graph(), "v51"), "aten.cos.default");
  });
  const Proof proof = edited.Prove();
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].node, "v51");
  CHECK_EQ(proof.unchanged, 0);
}

TEST_CASE("unchanged calls: outputs that are exchanged are compared") {
  const auto body = [](std::string_view outputs) {
    return ParseBody(fmt::format(R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  a = aten.sin.default(x) : f32[4, 4][4, 1]cpu
  b = aten.cos.default(x) : f32[4, 4][4, 1]cpu
  output([{}])
)",
                                 outputs));
  };
  const auto prove = [&](std::string_view from, std::string_view to) {
    return ProvePass(*body(from)->FindGraph("g"), *body(to)->FindGraph("g"),
                     {.stable_ids = true, .max_calls = 0});
  };
  CHECK(prove("a, b", "a, b").verdict == Verdict::kProven);
  CHECK(prove("a, b", "b, a").verdict == Verdict::kDiffers);
}

TEST_CASE("unchanged calls: a call before and after a write is not one call") {
  constexpr std::string_view kWrites = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  y = aten.sin.default(x) : f32[4, 4][4, 1]cpu
  z = aten.cos.default(y) : f32[4, 4][4, 1]cpu
  w = aten.mul_.Scalar(y, 2.0) : f32[4, 4][4, 1]cpu ~y
  output([z, w])
)";
  const Edited edited(ParseBody(kWrites), [](Rewriter& rewriter) {
    rewriter.MoveBefore(NodeNamed(rewriter.graph(), "w"), NodeNamed(rewriter.graph(), "z"));
  });
  const Proof proof = edited.Prove();
  REQUIRE(proof.verdict == Verdict::kDiffers);
  CHECK_EQ(proof.findings[0].node, "z");
}

TEST_CASE("unchanged calls: two calls that read each other's results prove nothing") {
  // `a` and `b` are the same calls in both graphs, but for what each reads.
  constexpr std::string_view kBefore = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  a = aten.sin.default(x) : f32[4, 4][4, 1]cpu
  b = aten.cos.default(a) : f32[4, 4][4, 1]cpu
  output([b])
)";
  const Edited edited(ParseBody(kBefore), [](Rewriter& rewriter) {
    Graph& graph = rewriter.graph();
    const NodeId a = NodeNamed(graph, "a"), b = NodeNamed(graph, "b");
    rewriter.SetSlot(b, graph.node(b).args_begin, Arg(ValueNamed(graph, "x")));
    rewriter.SetSlot(a, graph.node(a).args_begin, Arg(ValueNamed(graph, "b")));
    rewriter.MoveBefore(b, a);
  });
  CHECK(edited.Prove().verdict == Verdict::kDiffers);
}

TEST_CASE("unchanged calls: random numbers are those of all draws before") {
  constexpr std::string_view kDraws = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  r = aten.rand.default([4, 4]) : f32[4, 4][4, 1]cpu
  s = aten.rand.default([4, 4]) : f32[4, 4][4, 1]cpu
  y = aten.mul.Tensor(x, s) : f32[4, 4][4, 1]cpu
  output([y])
)";
  const Edited edited(ParseBody(kDraws),
                      [](Rewriter& rewriter) { rewriter.Erase(NodeNamed(rewriter.graph(), "r")); });
  CHECK(edited.Prove().verdict == Verdict::kDiffers);
}

}  // namespace
}  // namespace strata::prove
