#include "prove/layers/unchanged_calls.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/rewriter.h"
#include "passes/placement/placement.h"
#include "prove/prove_pass.h"
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

struct EditedCalls {
  std::unique_ptr<Module> before, after;

  EditedCalls(std::unique_ptr<Module> module, const std::function<void(Rewriter&)>& edit)
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
  const EditedCalls edited(ParseBody(ChainText(2000)),
                           [](Rewriter& rewriter) { AddInsteadOfDoubling(rewriter, 40); });
  const Proof proof = edited.Prove();
  CHECK_EQ(proof.reason, "");
  CHECK(proof.verdict == Verdict::kProven);
  CHECK_EQ(proof.unchanged, 1960);
  CHECK_LE(proof.evaluations, 4 * 40 + 2);
}

TEST_CASE("unchanged calls: ids of new inputs are taken, for what is left out after them") {
  const EditedCalls edited(ParseBody(ChainText(20)),
                           [](Rewriter& rewriter) { AddInsteadOfDoubling(rewriter, 2); });
  const auto changed =
      WithoutUnchangedCalls(*edited.before->FindGraph("g"), *edited.after->FindGraph("g"));
  REQUIRE(changed);
  for (const Graph* graph : {changed->pair.before, changed->pair.after})
    for (const NodeId node : graph->nodes())
      CHECK_LT(static_cast<uint64_t>(graph->node(node).stable_id),
               graph->module().next_stable_id());
}

TEST_CASE("PV-66: a changed call that computes something else is found in the whole graph") {
  const EditedCalls edited(ParseBody(ChainText(200)), [](Rewriter& rewriter) {
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
  const EditedCalls edited(ParseBody(kWrites), [](Rewriter& rewriter) {
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
  const EditedCalls edited(ParseBody(kBefore), [](Rewriter& rewriter) {
    Graph& graph = rewriter.graph();
    const NodeId a = NodeNamed(graph, "a"), b = NodeNamed(graph, "b");
    rewriter.SetSlot(b, graph.node(b).args_begin, Arg(ValueNamed(graph, "x")));
    rewriter.SetSlot(a, graph.node(a).args_begin, Arg(ValueNamed(graph, "b")));
    rewriter.MoveBefore(b, a);
  });
  CHECK(edited.Prove().verdict == Verdict::kDiffers);
}

TEST_CASE("unchanged calls: rows that ranks exchange by computed counts are computed, too") {
  const auto module = ParseBody(R"(
    x = placeholder : f32[4, 4]
    order = placeholder : i64[4]
    c = placeholder : i64[2]
    index = aten.remainder.Scalar(order, 4) : i64[4]
    h = aten.sin.default(x) : f32[4, 4]
    rows = aten.index_select.default(h, 0, index) : f32[4, 4]
    e0 = aten.select.int(c, 0, 0) : i64[] ~c
    e1 = aten.select.int(c, 0, 1) : i64[] ~c
    n0 = aten._local_scalar_dense.default(e0) : Sym(u0)
    n1 = aten._local_scalar_dense.default(e1) : Sym(u1)
    sent = _c10d_functional.all_to_all_single.default(rows, [n0, n1], [n0, n1], 'ep') : f32[u2, 4]
    done = _c10d_functional.wait_tensor.default(sent) : f32[u2, 4] ~sent
    v = aten.mul.Tensor(done, 2.0) : f32[u2, 4]
    output([v])
  )");
  Rewriter(*module->FindGraph("g"))
      .SetAttribute(module->FindGraph("g")->output(), kMeshAttribute, "ep=2");
  const auto after = module->Clone();
  Graph& graph = *after->FindGraph("g");
  const Arg done(ValueNamed(graph, "done"));
  Rewriter rewriter(graph);
  rewriter.SetOp(NodeNamed(graph, "v"), "aten.add.Tensor");
  const Arg args[] = {done, done};
  rewriter.SetArgs(NodeNamed(graph, "v"), args, {});
  const auto changed = WithoutUnchangedCalls(*module->FindGraph("g"), graph);
  REQUIRE(changed);
  const Graph& left = *changed->pair.after;
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(left.nodes(), [&](NodeId node) { return left.name(node) == name; });
  };
  CHECK(has("rows"));
  CHECK(has("index"));
  CHECK_FALSE(has("h"));
}

TEST_CASE("unchanged calls: a view of what is given stays a view of it") {
  constexpr std::string_view kTwice = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  y = aten.sin.default(x) : f32[4, 4][4, 1]cpu
  t = aten.t.default(y) : f32[4, 4][1, 4]cpu ~y
  tt = aten.t.default(t) : f32[4, 4][4, 1]cpu ~y
  z = aten.mm.default(x, tt) : f32[4, 4][4, 1]cpu
  output([z, t])
)";
  const EditedCalls edited(ParseBody(kTwice), [](Rewriter& rewriter) {
    Graph& graph = rewriter.graph();
    const NodeId z = NodeNamed(graph, "z");
    rewriter.SetSlot(z, graph.node(z).args_begin + 1, Arg(ValueNamed(graph, "y")));
    rewriter.Erase(NodeNamed(graph, "tt"));
  });
  const Proof proof = edited.Prove();
  CHECK(proof.verdict == Verdict::kProven);
  CHECK_EQ(proof.unchanged, 1);  // sin
}

constexpr std::string_view kNorm = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  m = aten.mean.dim(x, [1], True) : f32[4, 1][1, 1]cpu
  a = aten.add_.Scalar(m, 3) : f32[4, 1][1, 1]cpu ~m
  r = aten.rsqrt.default(a) : f32[4, 1][1, 1]cpu
  y = aten.mul.Tensor(x, r) : f32[4, 4][4, 1]cpu
  s = aten.sin.default(y) : f32[4, 4][4, 1]cpu
  z = aten.mul.Tensor(y, s) : f32[4, 4][4, 1]cpu
  output([z])
)";

/// `z` reads copies of `y` and `s` that are computed again, with `offset` in the place of the 3.
Proof ProveRecomputed(int64_t offset) {
  const EditedCalls edited(ParseBody(kNorm), [&](Rewriter& rewriter) {
    Graph& graph = rewriter.graph();
    std::map<ValueId, ValueId> copies;
    const auto copy = [&](ValueId value) {
      const auto found = copies.find(value);
      return found == copies.end() ? value : found->second;
    };
    const NodeId z = NodeNamed(graph, "z");
    rewriter.SetCursorBefore(z);
    for (const char* name : {"m", "a", "r", "y", "s"}) {
      const NodeId node = NodeNamed(graph, name), again = rewriter.Clone(node);
      copies.emplace(graph.result(node), graph.result(again));
      for (uint32_t i = 0; i < graph.node(again).num_args; ++i)
        if (const uint32_t slot = graph.node(again).args_begin + i; graph.slot(slot).is_value())
          rewriter.SetSlot(again, slot, Arg(copy(graph.slot(slot).value())));
      if (name == std::string_view("a")) {
        rewriter.SetSlot(again, graph.node(again).args_begin + 1, Arg::Int(offset));
        rewriter.SetAlias(graph.result(again), copy(ValueNamed(graph, "m")));
      }
    }
    for (const uint32_t i : {0, 1}) {
      const uint32_t slot = graph.node(z).args_begin + i;
      rewriter.SetSlot(z, slot, Arg(copy(graph.slot(slot).value())));
    }
  });
  return edited.Prove();
}

TEST_CASE("unchanged calls: what is computed again is what was computed first") {
  const Proof proof = ProveRecomputed(3);
  CHECK_EQ(proof.reason, "");
  CHECK(proof.verdict == Verdict::kProven);
  CHECK_EQ(proof.unchanged, 6);  // all but those of the memory that is written, and what reads it
  const Proof other = ProveRecomputed(5);
  REQUIRE_EQ(other.findings.size(), 1);
  CHECK_EQ(other.findings[0].node, "z");
}

TEST_CASE("unchanged calls: random numbers are those of all draws before") {
  constexpr std::string_view kDraws = R"(
  x = placeholder : f32[4, 4][4, 1]cpu
  r = aten.rand.default([4, 4]) : f32[4, 4][4, 1]cpu
  s = aten.rand.default([4, 4]) : f32[4, 4][4, 1]cpu
  y = aten.mul.Tensor(x, s) : f32[4, 4][4, 1]cpu
  output([y])
)";
  const EditedCalls edited(ParseBody(kDraws), [](Rewriter& rewriter) {
    rewriter.Erase(NodeNamed(rewriter.graph(), "r"));
  });
  CHECK(edited.Prove().verdict == Verdict::kDiffers);
}

}  // namespace
}  // namespace strata::prove
