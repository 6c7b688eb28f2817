// What a proof accepts and what it refutes, and where.

#include "prove/proof.h"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/rewriter.h"
#include "prove/partition.h"
#include "tests/support/graphs.h"
#include "tests/unit/prove/prove_texts.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::ParseBody;
using testing::ValueNamed;

/// A graph, and the same after an edit that keeps StableIds.
struct Edited {
  std::unique_ptr<Module> before, after;

  Edited(std::string_view body, const std::function<void(Rewriter&)>& edit)
      : before(ParseBody(body)), after(before->Clone()) {
    Rewriter rewriter(*after->FindGraph("g"));
    edit(rewriter);
  }
  Proof Prove() const {
    return prove::Prove(*before->FindGraph("g"), *after->FindGraph("g"), {.stable_ids = true});
  }
};

constexpr std::string_view kLayer = R"(
  x = placeholder : f32[4, 6]
  w = placeholder : f32[6, 6]
  labels = placeholder : i64[4]
  mm = aten.mm.default(x, w) : f32[4, 6]
  silu = aten.silu.default(mm) : f32[4, 6]
  add = aten.add.Tensor(silu, x) : f32[4, 6]
  scaled = aten.mul.Scalar(add, 0.5) : f32[4, 6]
  softmax = aten._log_softmax.default(scaled, 1, False) : f32[4, 6]
  (loss, total) = aten.nll_loss_forward.default(softmax, labels, None, 1, -100) as nll : (f32[], f32[])
  output(loss)
)";

NodeId At(Rewriter& rewriter, std::string_view name) {
  return NodeNamed(rewriter.graph(), name);
}

TEST_CASE("values beyond a limit are compared by hashes, until one differs") {
  const Edited same(kLayer, [](Rewriter& /*rewriter*/) {});
  const Edited other(kLayer, [](Rewriter& rewriter) {
    rewriter.SetSlot(At(rewriter, "scaled"),
                     rewriter.graph().node(At(rewriter, "scaled")).args_begin + 1,
                     Arg::Float(0.25));
  });
  for (const Edited* edited : {&same, &other}) {
    const Graph &before = *edited->before->FindGraph("g"), &after = *edited->after->FindGraph("g");
    const ProofOptions options = {.stable_ids = true, .max_kept_words = 100};
    const Proof proof = Prove(before, after, options);
    CHECK_EQ(proof.not_kept > 0, edited == &other);
    CHECK_EQ(proof.values + proof.not_kept, Prove(before, after, {.stable_ids = true}).values);
    CHECK_EQ(proof.verdict, edited == &same ? Verdict::kProven : Verdict::kDiffers);
    if (edited == &other) CHECK_EQ(proof.findings[0].node, "scaled");
  }
}

TEST_CASE("an unchanged graph is proven, every value of it") {
  const Proof proof = Edited(kLayer, [](Rewriter& /*rewriter*/) {}).Prove();
  CHECK(proof.verdict == Verdict::kProven);
  CHECK_GE(proof.values, 10);
  CHECK(proof.opaque.empty());
}

TEST_CASE("a wrong factor is found at its node, with the factor") {
  const Proof proof =
      Edited(kLayer, [](Rewriter& rewriter) {
        const NodeId node = At(rewriter, "scaled");
        rewriter.SetSlot(node, rewriter.graph().node(node).args_begin + 1, Arg::Float(0.25));
      }).Prove();
  REQUIRE(proof.verdict == Verdict::kDiffers);
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].node, "scaled");
  CHECK_EQ(proof.findings[0].what, "1/2 of the expected value");
}

TEST_CASE("an exchanged operand is found at its node, with the value that it has") {
  const Proof proof =
      Edited(kLayer, [](Rewriter& rewriter) {
        const NodeId node = At(rewriter, "scaled");
        rewriter.SetSlot(node, rewriter.graph().node(node).args_begin,
                         ValueNamed(rewriter.graph(), "silu"));
        rewriter.SetSlot(node, rewriter.graph().node(node).args_begin + 1, Arg::Int(1));
      }).Prove();
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].node, "scaled");
  CHECK_EQ(proof.findings[0].what, "the value of silu");
}

TEST_CASE("a wrong function is found at its node, and its consequences are not found again") {
  const Proof proof = Edited(kLayer, [](Rewriter& rewriter) {
                        rewriter.SetOp(At(rewriter, "silu"), "aten.sigmoid.default");
                      }).Prove();
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].node, "silu");
  CHECK_EQ(proof.findings[0].what, "24 of 24 elements differ");
}

TEST_CASE("two independent errors are two findings") {
  const Proof proof = Edited(kLayer, [](Rewriter& rewriter) {
                        rewriter.SetOp(At(rewriter, "silu"), "aten.sigmoid.default");
                        rewriter.SetOp(At(rewriter, "scaled"), "aten.add.Scalar");
                      }).Prove();
  REQUIRE_EQ(proof.findings.size(), 2);
  CHECK_EQ(proof.findings[1].node, "scaled");
}

TEST_CASE("ignored labels count: a mean over all rows is found") {
  const Proof proof =
      Edited(kLayer, [](Rewriter& rewriter) {
        const NodeId node = At(rewriter, "nll");
        rewriter.SetSlot(node, rewriter.graph().node(node).args_begin + 4, Arg::Int(-1));
      }).Prove();
  CHECK(proof.verdict == Verdict::kDiffers);
}

TEST_CASE("a write to an input that is missing is found") {
  const Proof proof = ProveTexts(R"(
  x = placeholder : f32[3]
  add = aten.add_.Scalar(x, 1.0) : f32[3] ~x
  output(add)
)",
                                 R"(
  x = placeholder : f32[3]
  add = aten.add.Scalar(x, 1.0) : f32[3]
  output(add)
)");
  REQUIRE_EQ(proof.findings.size(), 1);
  CHECK_EQ(proof.findings[0].what, "after the graph: 3 of 3 elements differ");
}

TEST_CASE("a size that a node reads of data is known to the nodes after it") {
  constexpr std::string_view kBody = R"(
  counts = placeholder : i64[4]
  total = aten.sum.default(counts) : i64[]
  n = aten._local_scalar_dense.default(total) : Sym(u0)
  rows = aten.repeat_interleave.Tensor(counts, output_size=n) : i64[u0]
  twice = aten.cat.default([rows, rows], 0) : i64[2*u0]
  (a, b) = aten.split.Tensor(twice, sym(u0), 0) as parts : (i64[u0], i64[u0])
  output([a, b])
)";
  const Proof proof = ProveTexts(kBody, kBody);
  CHECK_EQ(proof.reason, "");
  CHECK(proof.verdict == Verdict::kProven);
}

TEST_CASE("as many rows as elements of a mask are true are sizes of what reads them") {
  const auto picked = [](std::string_view mask) {
    return fmt::format(R"(
  x = placeholder : f32[6, 4]
  mask = placeholder : b8[6, 4]
  not_mask = aten.logical_not.default(mask) : b8[6, 4]
  at = aten.nonzero.default({}) : i64[u0, 2]
  n = aten.sym_size.int(at, 0) : Sym(u0)
  ge = _operator.ge(n, 0)
  check = aten._assert_scalar.default(ge, 'u0 >= 0')
  rows = aten.select.int(at, 1, 0) : i64[u0]
  columns = aten.select.int(at, 1, 1) : i64[u0]
  some = aten.index.Tensor(x, [rows, columns]) : f32[u0]
  ones = aten.ones.default([n]) : f32[u0]
  more = aten.add.Tensor(some, ones) : f32[u0]
  output([more])
)",
                       mask);
  };
  constexpr std::string_view kByMask = R"(
  x = placeholder : f32[6, 4]
  mask = placeholder : b8[6, 4]
  some = aten.index.Tensor(x, [mask]) : f32[u0]
  more = aten.add.Scalar(some, 1) : f32[u0]
  output([more])
)";
  const Proof proof = ProveTexts(picked("mask"), kByMask);
  CHECK_EQ(proof.reason, "");
  CHECK(proof.opaque.empty());
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(ProveTexts(picked("not_mask"), kByMask).verdict, Verdict::kDiffers);
}

TEST_CASE("PV-74: an operator without a definition is the same function on both sides, and named") {
  constexpr std::string_view kCustom = R"(
  x = placeholder : f32[4]
  y = mylib.special.default(x, 2) : f32[4]
  output(y)
)";
  const Proof same = ProveTexts(kCustom, kCustom);
  CHECK(same.verdict == Verdict::kProven);
  REQUIRE_EQ(same.opaque.size(), 1);
  CHECK_EQ(same.opaque[0], "mylib.special.default");
}

TEST_CASE("PV-74: an operator without a definition that reads other operands decides nothing") {
  const auto graph_with = [](std::string_view call, double factor) {
    return fmt::format(R"(
  x = placeholder : f32[4]
  y = {} : f32[4]
  z = aten.mul.Tensor(y, {}) : f32[4]
  output(z)
)",
                       call, factor);
  };
  const std::string before = graph_with("mylib.special.default(x, 2)", 0.5);
  const auto prove = [&](std::string_view call) {
    return ProveTexts(before, graph_with(call, 0.5));
  };
  CHECK(prove("mylib.special.default(x, 2)").verdict == Verdict::kProven);
  const Proof other = prove("mylib.special.default(x, 3)");
  CHECK(other.verdict == Verdict::kUnproven);
  CHECK_EQ(other.reason,
           "z may differ: nothing is known of mylib.special.default, which reads other operands");
  const Proof writes = prove("mylib.special_.default(x, 2)");
  CHECK(writes.verdict == Verdict::kUnproven);
  CHECK_EQ(writes.reason,
           "y (mylib.special_.default): an unknown operator that writes to an operand");
  // The same calls: what differs is not theirs.
  const Proof around = ProveTexts(before, graph_with("mylib.special.default(x, 2)", 0.25));
  CHECK(around.verdict == Verdict::kDiffers);
}

/// Half of the elements are dropped, in forward and in backward.
constexpr std::string_view kDropout = R"(
  x = placeholder : f32[4, 6]
  g = placeholder : f32[4, 6]
  r = aten.rand.default([4, 6]) : f32[4, 6]
  keep = aten.gt.Scalar(r, 0.5) : b8[4, 6]
  y = aten.mul.Tensor(x, keep) : f32[4, 6]
  r2 = aten.rand.default([4, 6]) : f32[4, 6]
  z = aten.mul.Tensor(y, r2) : f32[4, 6]
  dx = aten.mul.Tensor(g, keep) : f32[4, 6]
  output([z, dx])
)";

/// Backward computes the mask again, from numbers that `draw` gives.
Proof ProveRecompute(const std::function<ValueId(Rewriter&)>& draw) {
  return Edited(kDropout,
                [&](Rewriter& rewriter) {
                  Graph& graph = rewriter.graph();
                  rewriter.SetCursorBefore(At(rewriter, "dx"));
                  const ValueId numbers = draw(rewriter);
                  const TypeId mask = graph.value(ValueNamed(graph, "keep")).type;
                  const NodeId again =
                      rewriter.Create("aten.gt.Scalar", {Arg(numbers), Arg::Float(0.5)},
                                      From{At(rewriter, "keep")});
                  rewriter.SetType(graph.result(again), mask);
                  const NodeId dx = At(rewriter, "dx");
                  rewriter.SetSlot(dx, graph.node(dx).args_begin + 1, Arg(graph.result(again)));
                })
      .Prove();
}

TEST_CASE("B90: a mask that is computed again from fresh random numbers is another mask") {
  const Proof saved =
      ProveRecompute([](Rewriter& rewriter) { return ValueNamed(rewriter.graph(), "r"); });
  CHECK_EQ(saved.reason, "");
  CHECK(saved.verdict == Verdict::kProven);
  CHECK(saved.opaque.empty());
  const Proof fresh = ProveRecompute([](Rewriter& rewriter) {
    Graph& graph = rewriter.graph();
    const TypeId type = graph.value(ValueNamed(graph, "r")).type;
    const Arg sizes = rewriter.MakeSpan(ArgKind::kList, {Arg::Int(4), Arg::Int(6)});
    const NodeId node = rewriter.Create("aten.rand.default", {sizes}, From{At(rewriter, "r")});
    rewriter.SetType(graph.result(node), type);
    return graph.result(node);
  });
  REQUIRE_EQ(fresh.findings.size(), 1);
  CHECK_EQ(fresh.findings[0].node, "dx");
}

TEST_CASE("B90: numbers that are drawn in another order are other numbers") {
  const Edited edited(kDropout, [](Rewriter& rewriter) {
    rewriter.MoveBefore(At(rewriter, "r2"), At(rewriter, "r"));
  });
  const Proof proof = edited.Prove();
  REQUIRE(proof.verdict == Verdict::kDiffers);
  CHECK_EQ(proof.findings[0].node, "r2");
}

TEST_CASE("what cannot be evaluated is unproven, with the node and the reason") {
  const Proof proof = ProveTexts(R"(
  x = placeholder : f32[4, 3]
  y = placeholder : f32[4, 3]
  mm = aten.mm.default(x, y) : f32[4, 3]
  output(mm)
)",
                                 R"(
  x = placeholder : f32[4, 3]
  y = placeholder : f32[4, 3]
  output(x)
)");
  CHECK(proof.verdict == Verdict::kUnproven);
  CHECK_EQ(proof.reason, "mm (aten.mm.default): matrices that cannot be multiplied");
}

TEST_CASE("an index out of range is a difference, though the element is hidden later") {
  constexpr std::string_view kBody = R"(
  x = placeholder : f32[4]
  i = placeholder : i64[2]
  picked = aten.index.Tensor(x, [i]) : f32[2]
  output(picked)
)";
  const Proof proof = ProveTexts(kBody, R"(
  x = placeholder : f32[4]
  i = placeholder : i64[2]
  j = aten.add.Scalar(i, 4) : i64[2]
  picked = aten.index.Tensor(x, [j]) : f32[2]
  zero = aten.mul.Scalar(picked, 0.0) : f32[2]
  good = aten.index.Tensor(x, [i]) : f32[2]
  sum = aten.add.Tensor(good, zero) : f32[2]
  output(sum)
)");
  CHECK(proof.verdict == Verdict::kDiffers);
}

TEST_CASE("PV-79: a write out of range is a difference, and a negative index is out of range") {
  // An ignored label, -100, becomes the index 0, or it does not.
  constexpr std::string_view kScatter = R"(
  labels = placeholder : i64[4, 1]
  x = placeholder : f32[4, 200]
  counts = aten.ne.Scalar(labels, -100) : b8[4, 1]
  zero = aten.zeros_like.default(labels) : i64[4, 1]
  index = aten.where.self(counts, labels, zero) : i64[4, 1]
  at = aten.scatter.value(x, 1, index, -1.0) : f32[4, 200]
  hidden = aten.mul.Tensor(at, counts) : f32[4, 200]
  output(hidden)
)";
  std::string raw(kScatter);
  raw.replace(raw.find("(x, 1, index"), 12, "(x, 1, labels");
  CHECK(ProveTexts(kScatter, kScatter).verdict == Verdict::kProven);
  CHECK(ProveTexts(kScatter, raw).verdict == Verdict::kDiffers);
}

TEST_CASE("prove: a graph that is too large is unproven, with what to do") {
  auto module = ParseBody(R"(
  a = placeholder : f32[16384, 4096][4096, 1]cpu
  b = placeholder : f32[4096, 4096][4096, 1]cpu
  mm = aten.mm.default(a, b) : f32[16384, 4096][4096, 1]cpu
  output([mm])
)");
  const Graph& graph = *module->FindGraph("g");
  const Proof proof = Prove(graph, graph, {});
  CHECK(proof.verdict == Verdict::kUnproven);
  CHECK_EQ(proof.reason,
           "graph g needs 3e+11 products, more than the 2e+10 that a proof evaluates: record a "
           "smaller batch, sequence or width");
}

TEST_CASE("elements that nodes of their own take of a tuple, in any order, are its elements") {
  // As AOTAutograd's partitioner orders them.
  const Proof proof = ProveTexts(R"(
  x = placeholder : f32[6, 4]
  (v, m) = aten.var_mean.correction(x, [0], correction=0, keepdim=True) as vm : (f32[1, 4], f32[1, 4])
  a = aten.add.Tensor(v, 1.0) : f32[1, 4]
  b = aten.sub.Tensor(x, m) : f32[6, 4]
  output((a, b))
)",
                                 R"(
  x = placeholder : f32[6, 4]
  v = aten.var_mean.correction(x, [0], correction=0, keepdim=True)
  mean = _operator.getitem(v, 1) : f32[1, 4]
  b = aten.sub.Tensor(x, mean) : f32[6, 4]
  variance = _operator.getitem(v, 0) : f32[1, 4]
  a = aten.add.Tensor(variance, 1.0) : f32[1, 4]
  output((a, b))
)");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK(proof.opaque.empty());
}

constexpr std::string_view kDynamic = R"(
  n = placeholder : Sym(s77)
  x = placeholder : f32[s77, 6]
  half = _operator.floordiv(n, 2) : Sym((s77//2))
  part = aten.slice.Tensor(x, 0, 0, half) : f32[(s77//2), 6]
  sum = aten.sum.default(part) : f32[]
  output((sum,))
)";

TEST_CASE("symbolic sizes without a hint get numbers, the same in both graphs") {
  const Proof proof = ProveTexts(kDynamic, kDynamic);
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(proof.chosen_sizes, SymbolSizes{{"s77", 5}});
  CHECK(proof.opaque.empty());
  std::string wrong(kDynamic);
  wrong.replace(wrong.find("(n, 2)"), 6, "(n, 3)");
  CHECK_EQ(ProveTexts(kDynamic, wrong).verdict, Verdict::kDiffers);
}

TEST_CASE("a number that is right for the first sizes only is found with others") {
  std::string wrong(kDynamic);
  wrong.replace(wrong.find("0, 0, half"), 10, "0, 0, 2");
  const Proof proof = ProveTexts(kDynamic, wrong);
  CHECK_EQ(proof.verdict, Verdict::kDiffers);
  CHECK_EQ(proof.chosen_sizes, SymbolSizes{{"s77", 8}});
}

TEST_CASE("a view that needs another size than the first one chosen gets one") {
  constexpr std::string_view kView = R"(
  x = placeholder : f32[s3, 6]
  y = aten.view.default(x, [-1, 4]) : f32[((6*s3)//4), 4]
  output((y,))
)";
  const Proof proof = ProveTexts(kView, kView);
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(proof.chosen_sizes, SymbolSizes{{"s3", 8}});
}

TEST_CASE("a partition that calls an unknown operator on other operands is unproven, not wrong") {
  const auto graph = [](std::string_view body) { return ParseBody(body); };
  const auto joint = graph(R"(
  x = placeholder : f32[4]
  tangents_1 = placeholder : f32[4]
  y = mylib.f.default(x) : f32[4]
  g = aten.mul.Tensor(y, tangents_1) : f32[4]
  output((y, g))
)");
  const auto forward = graph(R"(
  x = placeholder : f32[4]
  y = mylib.fast_f.default(x) : f32[4]
  output((y, y))
)");
  const auto backward = graph(R"(
  y = placeholder : f32[4]
  tangents_1 = placeholder : f32[4]
  g = aten.mul.Tensor(y, tangents_1) : f32[4]
  output((g,))
)");
  const Proof proof = ProvePartition(*joint->FindGraph("g"), *forward->FindGraph("g"),
                                     *backward->FindGraph("g"), {});
  CHECK_EQ(proof.verdict, Verdict::kUnproven);
  CHECK_EQ(proof.reason,
           "y may differ: nothing is known of mylib.f.default, mylib.fast_f.default, which reads "
           "other operands");
}

TEST_CASE("a partition of a step with dropout is proven if backward reads the mask of forward") {
  constexpr std::string_view kMask = R"(
  r = aten.rand.default([32]) : f32[32]
  kept = aten.gt.Scalar(r, 0.5) : b8[32]
)";
  const auto joint = ParseBody(fmt::format(R"(
  x = placeholder : f32[32]
  tangents_1 = placeholder : f32[32]{}
  y = aten.mul.Tensor(kept, x) : f32[32]
  g = aten.mul.Tensor(kept, tangents_1) : f32[32]
  output((y, g))
)",
                                           kMask));
  const auto forward = ParseBody(fmt::format(R"(
  x = placeholder : f32[32]{}
  y = aten.mul.Tensor(kept, x) : f32[32]
  output((y, kept))
)",
                                             kMask));
  const auto backward = [](std::string_view inputs) {
    return ParseBody(fmt::format(R"({}
  g = aten.mul.Tensor(kept, tangents_1) : f32[32]
  output((g,))
)",
                                 inputs));
  };
  const auto verdict_of = [&](std::string_view inputs) {
    const auto second = backward(inputs);
    return ProvePartition(*joint->FindGraph("g"), *forward->FindGraph("g"), *second->FindGraph("g"),
                          {})
        .verdict;
  };
  const std::string tangent = "\n  tangents_1 = placeholder : f32[32]";
  CHECK_EQ(verdict_of("\n  kept = placeholder : b8[32]" + tangent), Verdict::kProven);
  CHECK_EQ(verdict_of(tangent + std::string(kMask)), Verdict::kDiffers);
}

}  // namespace
}  // namespace strata::prove
