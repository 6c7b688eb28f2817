#include "runtime/plan/memory/workspace.h"

#include <string_view>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/graphs.h"

namespace strata {
namespace {

/// Of the first step of a graph, with one thread and with three.
std::pair<int64_t, int64_t> Workspace(std::string_view body) {
  const Plan plan = testing::OrDie(Lower(*testing::ParseBody(body)->FindGraph("g")));
  return {WorkspaceBytes(plan, plan.steps[StepId{0}], 1),
          WorkspaceBytes(plan, plan.steps[StepId{0}], 3)};
}

TEST_CASE("attention: blocks of scores per thread, maxima, sums and rows of the result") {
  const auto [one, three] = Workspace(R"(
  q = placeholder : f32[2, 4, 40, 16][2560, 640, 16, 1]cpu
  (o, l) = aten._scaled_dot_product_flash_attention_for_cpu.default(q, q, q, 0.0, True) as a : (f32[2, 4, 40, 16][2560, 16, 64, 1]cpu, f32[2, 4, 40][160, 1, 4]cpu)
  output([o, l])
)");
  CHECK_EQ(one, 32 * (40 + 2 + 16) * 4);
  CHECK_EQ(three, 3 * one);
}

TEST_CASE("attention's gradient copies a gradient that does not lie as its result does") {
  const auto backward = [](std::string_view strides) {
    return Workspace(fmt::format(R"(
  g = placeholder : f32[2, 4, 40, 16]{}cpu
  q = placeholder : f32[2, 4, 40, 16][2560, 640, 16, 1]cpu
  l = placeholder : f32[2, 4, 40][160, 1, 4]cpu
  (a, b, c) = aten._scaled_dot_product_flash_attention_for_cpu_backward.default(g, q, q, q, q, l, 0.0, True) as d : (f32[2, 4, 40, 16][2560, 16, 64, 1]cpu, f32[2, 4, 40, 16][2560, 16, 64, 1]cpu, f32[2, 4, 40, 16][2560, 16, 64, 1]cpu)
  output([a, b, c])
)",
                                 strides))
        .first;
  };
  CHECK_EQ(backward("[2560, 16, 64, 1]"), 2 * 32 * 40 * 4);
  CHECK_EQ(backward("[2560, 640, 16, 1]"), 2 * 32 * 40 * 4 + 2 * 4 * 40 * 16 * 4);
}

TEST_CASE("sums and means cast operands of another type than theirs") {
  const auto sum = [](std::string_view from, std::string_view call, std::string_view to) {
    return Workspace(fmt::format(R"(
  x = placeholder : {}[8, 4][4, 1]cpu
  z = aten.{} : {}[4][1]cpu
  output([z])
)",
                                 from, call, to))
        .first;
  };
  CHECK_EQ(sum("b8", "sum.dim_IntList(x, [0])", "i64"), 8 * 4 * 8);
  CHECK_EQ(sum("bf16", "mean.dim(x, [0], dtype=torch.float32)", "f32"), 8 * 4 * 4);
  CHECK_EQ(sum("f32", "sum.dim_IntList(x, [0])", "f32"), 0);
}

TEST_CASE("elementwise operators cast operands of a narrower type; numbers are read as they are") {
  CHECK_EQ(Workspace(R"(
  x = placeholder : bf16[8, 4][4, 1]cpu
  y = placeholder : f32[8, 1][1, 1]cpu
  z = aten.mul.Tensor(x, y) : f32[8, 4][4, 1]cpu
  output([z])
)")
               .first,
           8 * 4 * 4);
  CHECK_EQ(Workspace(R"(
  x = placeholder : f32[8, 4][4, 1]cpu
  y = placeholder : f64[][]cpu
  z = aten.mul.Tensor(x, y) : f32[8, 4][4, 1]cpu
  output([z])
)")
               .first,
           0);
}

TEST_CASE("results that nobody reads are there while their operator runs") {
  const Plan plan = testing::OrDie(Lower(*testing::ParseBody(R"(
  x = placeholder : f32[8, 4][4, 1]cpu
  (v, i) = aten.sort.default(x) as s : (f32[8, 4][4, 1]cpu, i64[8, 4][4, 1]cpu)
  output([v])
)")
                                              ->FindGraph("g")));
  CHECK_EQ(plan.steps[StepId{0}].unread_bytes, 8 * 4 * 8);
}

}  // namespace
}  // namespace strata
