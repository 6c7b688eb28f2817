// Graphs that are too large to be evaluated, proven on small sizes.

#include "prove/sizes/reduce.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/rewriter.h"
#include "prove/prove_pass.h"
#include "tests/support/graphs.h"

namespace strata::prove {
namespace {

using testing::NodeNamed;
using testing::ParseBody;

constexpr std::string_view kLarge = R"(
  x = placeholder : f32[8, 8192, 4096]
  w = placeholder : f32[4096, 14336]
  flat = aten.reshape.default(x, [65536, 4096]) : f32[65536, 4096]
  mm = aten.mm.default(flat, w) : f32[65536, 14336]
  silu = aten.silu.default(mm) : f32[65536, 14336]
  rows = aten.reshape.default(silu, [8, 8192, 14336]) : f32[8, 8192, 14336]
  half = aten.slice.Tensor(rows, 2, 0, 7168) : f32[8, 8192, 7168]
  other = aten.slice.Tensor(rows, 2, 7168, 14336) : f32[8, 8192, 7168]
  product = aten.mul.Tensor(half, other) : f32[8, 8192, 7168]
  scaled = aten.div.Scalar(product, 4096) : f32[8, 8192, 7168]
  output(scaled)
)";

/// The proof of the large graph and an edit of it.
Proof ProveEdited(const std::function<void(Rewriter&)>& edit) {
  const std::unique_ptr<Module> before = ParseBody(kLarge), after = before->Clone();
  Rewriter rewriter(*after->FindGraph("g"));
  edit(rewriter);
  return ProvePass(*before->FindGraph("g"), *after->FindGraph("g"), {.stable_ids = true});
}

void SetInteger(Rewriter& rewriter, std::string_view name, uint32_t argument, int64_t value) {
  const NodeId node = NodeNamed(rewriter.graph(), name);
  rewriter.SetSlot(node, rewriter.graph().node(node).args_begin + argument, Arg::Int(value));
}

/// The one small number that takes the place of a size.
int64_t ReducedOf(const Proof& proof, int64_t size) {
  std::vector<int64_t> numbers;
  for (const auto& [old, number] : proof.reduced_sizes)
    if (old == size) numbers.push_back(number);
  REQUIRE_EQ(numbers.size(), 1);
  return numbers[0];
}

TEST_CASE("a graph that is too large is proven on reduced sizes, which the proof names") {
  const Proof proof = ProveEdited([](Rewriter& /*rewriter*/) {});
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(ReducedOf(proof, 14336), 2 * ReducedOf(proof, 7168));
  std::set<int64_t> numbers;
  for (const auto& [size, number] : proof.reduced_sizes)
    CHECK(numbers.insert(number).second);
}

TEST_CASE("positions of a dimension index dimensions of the same reduced size") {
  const std::unique_ptr<Module> before = ParseBody(R"(
    x = placeholder : f32[65536, 4096]
    gate = placeholder : f32[4096, 256]
    scores = aten.mm.default(x, gate) : f32[65536, 256]
    groups = aten.reshape.default(scores, [65536, 8, 32]) : f32[65536, 8, 32]
    cosines = aten.cos.default(groups) : f32[65536, 8, 32]
    all = aten.reshape.default(cosines, [65536, 256]) : f32[65536, 256]
    (_, chosen) = aten.topk.default(all, 8) as top : (f32[65536, 8], i64[65536, 8])
    none = aten.zeros.default([65536, 256], dtype=torch.bool) : b8[65536, 256]
    mask = aten.scatter.value(none, 1, chosen, True) : b8[65536, 256]
    counts = aten.sum.dim_IntList(mask, [0]) : i64[256]
    output(counts)
  )");
  const std::unique_ptr<Module> after = before->Clone();
  const Graph& graph = *before->FindGraph("g");
  const Proof proof = ProvePass(graph, *after->FindGraph("g"), {.stable_ids = true});
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_EQ(ReducedOf(proof, 256) % ReducedOf(proof, 32), 0);

  const auto pair = Reduce(graph, *after->FindGraph("g"), {.stable_ids = true});
  REQUIRE(pair);
  const auto last_size = [&](std::string_view name) {
    const NodeId node = NodeNamed(*pair->before, name);
    const Module& module = pair->before->module();
    const Type& type = module.types()[pair->before->value(pair->before->result(node)).type];
    return module.dims().AsConst(type.sizes.back());
  };
  CHECK_EQ(last_size("none"), last_size("all"));
  // Fewer than 8 are chosen, of more than are chosen.
  CHECK_LT(last_size("top"), 8);
  CHECK_LT(last_size("top"), last_size("all"));
}

TEST_CASE("another function, number or bound differs on reduced sizes, too") {
  const auto node_of = [](const Proof& proof) {
    REQUIRE_EQ(proof.verdict, Verdict::kDiffers);
    return proof.findings.front().node;
  };
  CHECK_EQ(node_of(ProveEdited([](Rewriter& rewriter) {
             rewriter.SetOp(NodeNamed(rewriter.graph(), "silu"), "aten.gelu.default");
           })),
           "silu");
  CHECK_EQ(node_of(ProveEdited([](Rewriter& rewriter) {
             SetInteger(rewriter, "other", 2, 0);
             SetInteger(rewriter, "other", 3, 7168);
           })),
           "other");
}

TEST_CASE("a number in arithmetic is not taken for the reduced size of another") {
  const Proof whole = ProveEdited([](Rewriter& /*rewriter*/) {});
  for (const int64_t number : {ReducedOf(whole, 4096), int64_t{2048}, int64_t{14336}}) {
    const Proof proof =
        ProveEdited([&](Rewriter& rewriter) { SetInteger(rewriter, "scaled", 1, number); });
    CHECK_EQ(proof.verdict, Verdict::kDiffers);
    REQUIRE_EQ(proof.findings.size(), 1);
    CHECK_EQ(proof.findings[0].node, "scaled");
  }
}

TEST_CASE("a literal in the place of a mean's size differs, whatever the size becomes") {
  constexpr std::string_view kProduct = R"(
  x = placeholder : f32[65536, 4096]
  w = placeholder : f32[4096, 14336]
  mm = aten.mm.default(x, w) : f32[65536, 14336]
)";
  const auto before = ParseBody(
      fmt::format("{}  mean = aten.mean.dim(mm, [1]) : f32[65536]\n  output(mean)\n", kProduct));
  const auto verdict_of = [&](std::string_view scaled) {
    const auto after = ParseBody(fmt::format(
        "{}  sum = aten.sum.dim_IntList(mm, [1]) : f32[65536]\n  mean = {} : f32[65536]\n"
        "  output(mean)\n",
        kProduct, scaled));
    return ProvePass(*before->FindGraph("g"), *after->FindGraph("g"), {}).verdict;
  };
  CHECK_EQ(verdict_of("aten.div.Scalar(sum, 14336)"), Verdict::kProven);
  for (int number = 3; number < 16; ++number) {
    CAPTURE(number);
    CHECK_EQ(verdict_of(fmt::format("aten.div.Scalar(sum, {})", number)), Verdict::kDiffers);
    CHECK_EQ(verdict_of(fmt::format("aten.div.Tensor(sum, {}.0)", number)), Verdict::kDiffers);
    CHECK_EQ(verdict_of(fmt::format("aten.div.Tensor(sum, {})", number)), Verdict::kDiffers);
    CHECK_EQ(verdict_of(fmt::format("aten.mul.Scalar(sum, {})", 1.0 / number)), Verdict::kDiffers);
  }
}

TEST_CASE("a size that fits no type stays wrong") {
  const Proof whole = ProveEdited([](Rewriter& /*rewriter*/) {});
  const Proof proof = ProveEdited([&](Rewriter& rewriter) {
    const NodeId node = NodeNamed(rewriter.graph(), "flat");
    const uint32_t slot = rewriter.graph().args(node)[1].span_begin();
    rewriter.SetSlot(node, slot, Arg::Int(ReducedOf(whole, 65536)));
  });
  CHECK_NE(proof.verdict, Verdict::kProven);
}

TEST_CASE("a size that an argument of unknown meaning is equal to is left whole, and named") {
  const std::unique_ptr<Module> module = ParseBody(R"(
    x = placeholder : f32[65536, 4096]
    w = placeholder : f32[4096, 65536]
    mm = aten.mm.default(x, w) : f32[65536, 65536]
    own = my.op.default(mm, 65536) : f32[65536, 65536]
    output(own)
  )");
  const Graph& graph = *module->FindGraph("g");
  const Proof proof = ProvePass(graph, graph, {.stable_ids = true});
  CHECK_EQ(proof.verdict, Verdict::kUnproven);
  CHECK(proof.reason.ends_with("sizes that other arguments are equal to: 65536"));
}

TEST_CASE("an index in a dimension that stays is no size") {
  const auto module = ParseBody(R"(
    x = placeholder : f32[9, 8192]
    y = placeholder : f32[8192, 8192]
    n = aten.linalg_vector_norm.default(x) : f32[]
    m = aten.linalg_vector_norm.default(y) : f32[]
    norms = aten.stack.default([n, m, n, m, n, m, n, m, n, m, n, m]) : f32[12]
    squares = aten.mul.Tensor(norms, norms) : f32[12]
    last = aten.select.int(squares, 0, 9) : f32[] ~squares
    scaled = aten.mul.Tensor(x, last) : f32[9, 8192]
    output(scaled)
  )");
  const Graph& graph = *module->FindGraph("g");
  const auto pair = Reduce(graph, graph, {.stable_ids = true});
  REQUIRE(pair);
  CHECK(std::ranges::any_of(pair->sizes, [](const auto& size) { return size.first == 9; }));
}

TEST_CASE("pads, and negative ones that cut off, become smaller as what they pad does") {
  const auto text = [](std::string_view cut) {
    return fmt::format(R"(
  x = placeholder : f32[65536, 4096]
  w = placeholder : f32[4096, 65536]
  mm = aten.mm.default(x, w) : f32[65536, 65536]
  both = aten.constant_pad_nd.default(mm, [64, -1000, -{}, 500]) : f32[65500, 64600]
  back = aten.constant_pad_nd.default(both, [-64, 1000, 536, -500]) : f32[65536, 65536]
  output(back)
)",
                       cut);
  };
  const std::unique_ptr<Module> module = ParseBody(text("536")), wrong = ParseBody(text("535"));
  const Graph &graph = *module->FindGraph("g"), &other = *wrong->FindGraph("g");
  const Proof proof = ProvePass(graph, graph, {.stable_ids = true});
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_NE(ProvePass(graph, other, {.stable_ids = true}).verdict, Verdict::kProven);
}

TEST_CASE("a graph with more sizes than small numbers is not proven, and the reason says so") {
  // Different sizes stay different: 3 · 4 · … · 15 elements are the fewest.
  constexpr std::string_view kSizes =
      "101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113";
  const auto module =
      ParseBody(fmt::format("\n  x = placeholder : f32[{}]\n  output(x)\n", kSizes));
  const Graph& graph = *module->FindGraph("g");
  const Proof proof = ProvePass(graph, graph, {.stable_ids = true});
  CHECK_EQ(proof.verdict, Verdict::kUnproven);
  CHECK_EQ(proof.reason,
           "too large to evaluate, and its sizes cannot be reduced: with the smallest numbers that "
           "were found for its 13 sizes it is too large, too: 3 for 101, 4 for 102, 5 for 103, 6 "
           "for 104, "
           "7 for 105, 8 for 106, 9 for 107, 10 for 108, 11 for 109, 12 for 110, 13 for 111, 14 "
           "for 112, "
           "15 for 113");
}

/// What the dimensions of a node's result become.
std::vector<int64_t> ReducedDims(std::string_view text, std::string_view name, Numbers numbers) {
  const std::unique_ptr<Module> before = ParseBody(text), after = before->Clone();
  const auto pair = Reduce(*before->FindGraph("g"), *after->FindGraph("g"),
                           {.numbers = numbers, .stable_ids = true});
  REQUIRE(pair);
  const Module& module = pair->before->module();
  const ValueId value = pair->before->result(NodeNamed(*pair->before, name));
  std::vector<int64_t> dims;
  for (const DimId dim : module.types()[pair->before->value(value).type].sizes)
    dims.push_back(module.dims().AsConst(dim).value_or(0));
  return dims;
}

TEST_CASE("new zeros have sizes of their own, and not those of the tensor whose type they take") {
  const std::vector<int64_t> dims = ReducedDims(R"(
    x = placeholder : f32[32768, 4096]
    w = placeholder : f32[4096, 14336]
    rows = placeholder : i64[32768]
    none = aten.new_zeros.default(x, [4096, 4096]) : f32[4096, 4096]
    sums = aten.index_add.default(none, 0, rows, x) : f32[4096, 4096]
    y = aten.mm.default(sums, w) : f32[4096, 14336]
    batches = aten.reshape.default(y, [64, 64, 14336]) : f32[64, 64, 14336]
    output(batches)
  )",
                                                "sums", Numbers::kKeep);
  CHECK_GT(dims[0], dims[1]);  // rows are a product
}

TEST_CASE("a number that positions are shifted by is how many positions there are") {
  const std::vector<int64_t> dims = ReducedDims(R"(
    i = placeholder : i64[]
    x = placeholder : f32[2048, 16384]
    w = placeholder : f32[16384, 2048]
    y = aten.mm.default(x, w) : f32[2048, 2048]
    first = aten.mul.Scalar(i, 2048) : i64[]
    own = aten.arange.default(2048) : i64[2048]
    positions = aten.add.Tensor(own, first) : i64[2048]
    column = aten.unsqueeze.default(positions, 1) : i64[2048, 1]
    mask = aten.gt.Scalar(column, 100) : b8[2048, 1]
    z = aten.masked_fill.Scalar(y, mask, 0) : f32[2048, 2048]
    batches = aten.reshape.default(z, [32, 64, 2048]) : f32[32, 64, 2048]
    output(batches)
  )",
                                                "z", Numbers::kAsSizes);
  CHECK_GT(dims[0], dims[1]);
}

/// The proof of a graph with ten sizes, and of one in which two of them are exchanged.
Proof ProveOfTenSizes(std::pair<size_t, size_t> exchanged) {
  std::vector<int64_t> sizes = {101, 102, 103, 104, 105, 106, 107, 108, 109, 110};
  const auto of_sizes = [](const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
    return ParseBody(fmt::format(R"(
  x = placeholder : f32[{0}]
  y = aten.reshape.default(x, [{1}]) : f32[{1}]
  output(y)
)",
                                 fmt::join(from, ", "), fmt::join(to, ", ")));
  };
  const auto before = of_sizes(sizes, sizes);
  std::vector<int64_t> others = sizes;
  std::swap(others[exchanged.first], others[exchanged.second]);
  const auto after = of_sizes(sizes, others);
  return ProvePass(*before->FindGraph("g"), *after->FindGraph("g"), {});
}

TEST_CASE("of many sizes some are equal in one of two proofs, and different in the other") {
  const Proof proof = ProveOfTenSizes({0, 0});
  CHECK_EQ(proof.reason, "");
  CHECK_EQ(proof.verdict, Verdict::kProven);
  CHECK_GT(proof.reduced_sizes.size(), 10);
  for (const auto& exchanged : {std::pair<size_t, size_t>(0, 1), {1, 2}, {3, 4}, {0, 9}}) {
    CAPTURE(exchanged.first);
    CHECK_EQ(ProveOfTenSizes(exchanged).verdict, Verdict::kDiffers);
  }
}

}  // namespace
}  // namespace strata::prove
