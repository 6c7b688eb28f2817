#include "runtime/plan/size_fit.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "ir/module.h"
#include "runtime/plan/input_sizes.h"
#include "runtime/plan/plan.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using Samples = std::vector<int64_t>;

const Samples kBatch = {3, 5, 7, 11}, kSeq = {17, 19, 23, 29}, kRows = {101, 77, 60, 95};

/// The expression of numbers, with sizes s0 and s1 and the number u0 read from data.
std::string Fitted(const Samples& numbers) {
  Module module;
  DimTable& dims = module.dims();
  SizeFit fit(dims);
  fit.AddSize(dims.Sym("s0"), kBatch);
  fit.AddSize(dims.Sym("s1"), kSeq);
  fit.AddUnbacked(dims.Sym("u0"), kRows);
  const std::optional<DimId> dim = fit.Fit(numbers);
  return dim ? dims.ToString(*dim) : "none";
}

template <class Fn>
Samples Each(Fn&& fn) {
  Samples numbers;
  for (size_t i = 0; i < kBatch.size(); ++i)
    numbers.push_back(fn(kBatch[i], kSeq[i], kRows[i]));
  return numbers;
}

TEST_CASE("numbers of several samples become the simplest expression that is right for all") {
  CHECK_EQ(Fitted({64, 64, 64, 64}), "64");
  CHECK_EQ(Fitted({INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}), "9223372036854775807");
  CHECK_EQ(Fitted(kBatch), "s0");
  CHECK_EQ(Fitted(Each([](auto b, auto s, auto) { return 12 * b * s; })), "12*s0*s1");
  CHECK_EQ(Fitted(Each([](auto b, auto s, auto) { return b * s * s; })), "s0*s1**2");
  CHECK_EQ(Fitted(Each([](auto, auto s, auto) { return -3 * s; })), "-3*s1");
  CHECK_EQ(Fitted(Each([](auto b, auto, auto) { return 4 * b - 7; })), "4*s0 - 7");
  CHECK_EQ(Fitted(Each([](auto b, auto s, auto) { return b * s + s; })), "s1 + s0*s1");
  CHECK_EQ(Fitted(kRows), "u0");
  CHECK_EQ(Fitted(Each([](auto, auto, auto u) { return 8 * u; })), "8*u0");
  CHECK_EQ(Fitted(Each([](auto, auto s, auto u) { return 2 * s * u; })), "2*s1*u0");
  CHECK_EQ(Fitted(Each([](auto b, auto s, auto u) { return 2 * b * s - u; })), "-u0 + 2*s0*s1");
}

TEST_CASE("a number that no expression gives has none") {
  CHECK_EQ(Fitted({1, 2, 4, 8}), "none");
  CHECK_EQ(Fitted(Each([](auto b, auto, auto) { return b / 2; })), "none");
  CHECK_EQ(Fitted(Each([](auto b, auto s, auto u) { return b + s + u; })), "none");
  CHECK_EQ(Fitted({INT64_MIN, INT64_MAX, 0, 1}), "none");
}

TEST_CASE("a size that is a number for good is one in expressions") {
  Module module;
  DimTable& dims = module.dims();
  SizeFit fit(dims);
  fit.AddSize(dims.Sym("s0"), kBatch);
  fit.AddSize(dims.Const(32), kSeq);
  CHECK_EQ(dims.ToString(*fit.Fit(kSeq)), "32");
  CHECK_EQ(dims.ToString(*fit.Fit(Each([](auto b, auto s, auto) { return b * s; }))), "32*s0");
}

constexpr std::string_view kGraph = R"(
symbol s0 hint=4 min=1
symbol s1 hint=2 min=2 max=8
graph g
  x = placeholder : f32[s0, 3*s1][3*s1, 1]cpu
  y = placeholder : f32[s0 + s1][1]cpu
  output([x, y])
)";

std::string Refusal(const std::vector<Samples>& shapes) {
  const auto module = testing::ParseOrDie(kGraph);
  return testing::MessageOf(SizesOfInputs(*module->FindGraph("g"), shapes));
}

TEST_CASE("the symbols of a graph are learnt from the shapes of its inputs") {
  const auto module = testing::ParseOrDie(kGraph);
  const Graph& graph = *module->FindGraph("g");
  CHECK(HasDynamicShapes(graph));
  CHECK_EQ(HintsOf(graph), SymbolSizes{{"s0", 4}, {"s1", 2}});
  const SymbolSizes sizes =
      testing::OrDie(SizesOfInputs(graph, std::vector<Samples>{{5, 12}, {9}}));
  CHECK_EQ(sizes, SymbolSizes{{"s0", 5}, {"s1", 4}});
  CHECK_EQ(Refusal({{5, 13}, {9}}),
           "size 13 does not fit: input x of graph g: 3*s1 is a multiple of 3");
  CHECK_EQ(Refusal({{5, 3}, {9}}), "size 3 does not fit: input x of graph g: 3*s1 is from 6 to 24");
  CHECK_EQ(Refusal({{0, 6}, {9}}), "size 0 does not fit: input x of graph g: s0 is at least 1");
}

TEST_CASE("integers of the program follow from the sizes of tensors, or are drawn") {
  const auto module = testing::ParseOrDie(R"(
symbol s0 hint=4
symbol s1
graph g
  n = placeholder : Sym(s0)
  m = placeholder : Sym(s1)
  x = placeholder : f32[s0, 8][8, 1]cpu
  k = _operator.mul(n, 8) : Sym(8*s0)
  v = aten.view.default(x, [k]) : f32[8*s0][1]cpu
  output([v, n])
)");
  const Graph& graph = *module->FindGraph("g");
  const std::vector<NodeId> given = GivenInputs(graph);
  REQUIRE_EQ(given.size(), 1);
  CHECK_EQ(graph.name(given[0]), "x");
  SymbolSizes sizes = testing::OrDie(SizesOfInputs(graph, std::vector<Samples>{{6, 8}}));
  CHECK_EQ(sizes, SymbolSizes{{"s0", 6}});
  CHECK_EQ(DrawSizes(graph).at("s0"), 4);
  sizes.merge(DrawSizes(graph));
  CHECK_EQ(sizes.at("s0"), 6);
  CHECK_GT(sizes.at("s1"), 1);
  const Plan plan = testing::OrDie(Lower(graph, {}, sizes));
  CHECK_EQ(plan.inputs.size(), 1);
  REQUIRE_EQ(plan.steps.size(), 1);  // the view; the product is a number
  CHECK_EQ(plan.steps[StepId{0}].args[1].elements[0].integer, 48);
  REQUIRE_EQ(plan.outputs.size(), 2);
  CHECK_FALSE(plan.outputs[1].valid());
}

}  // namespace
}  // namespace strata
