#include "passes/core/view_strides.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "ir/module.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::NodeNamed;
using testing::ParseBody;

/// The type of result `i` of `y`, with its offset; "none": its strides are not known.
std::string View(std::string_view source, std::string_view call, std::string_view results,
                 size_t i = 0) {
  const std::string text =
      fmt::format("\n  x = placeholder : {}\n  {} : {}\n  output([x])\n", source, call, results);
  const auto module = ParseBody(text);
  Graph& graph = *module->FindGraph("g");
  const Type type = TypeOfView(graph, NodeNamed(graph, "y"), i);
  if (!type.has_strides) return "none";
  const TypeId id = module->types().Intern(type);
  const auto offset = type.dim.valid() ? module->dims().AsConst(type.dim).value_or(-1) : 0;
  return fmt::format("{}@{}", module->types().ToString(id), offset);
}

TEST_CASE("the strides of views follow from those of what they view") {
  // What the graph states is of a tensor that lay otherwise.
  const std::string_view x = "f32[2, 3, 4][24, 8, 2]cpu@(5)";
  CHECK_EQ(View(x, "y = aten.transpose.int(x, 1, -1)", "f32[2, 4, 3][12, 1, 4]cpu ~x"),
           "f32[2, 4, 3][24, 2, 8]cpu@5");
  CHECK_EQ(View(x, "y = aten.permute.default(x, [2, 0, 1])", "f32[4, 2, 3][1, 12, 4]cpu ~x"),
           "f32[4, 2, 3][2, 24, 8]cpu@5");
  CHECK_EQ(View(x, "y = aten.unsqueeze.default(x, 1)", "f32[2, 1, 3, 4][12, 12, 4, 1]cpu ~x"),
           "f32[2, 1, 3, 4][24, 24, 8, 2]cpu@5");
  CHECK_EQ(View(x, "y = aten.slice.Tensor(x, 1, 1, 3)", "f32[2, 2, 4][12, 4, 1]cpu ~x"),
           "f32[2, 2, 4][24, 8, 2]cpu@13");
  CHECK_EQ(View(x, "y = aten.select.int(x, 2, 3)", "f32[2, 3][12, 4]cpu ~x"),
           "f32[2, 3][24, 8]cpu@11");
  CHECK_EQ(View(x, "y = aten.slice.Tensor(x, 1, -2, 3)", "f32[2, 2, 4][12, 4, 1]cpu ~x"),
           "f32[2, 2, 4][24, 8, 2]cpu@13");
  CHECK_EQ(View(x, "y = aten.select.int(x, 2, -1)", "f32[2, 3][12, 4]cpu ~x"),
           "f32[2, 3][24, 8]cpu@11");
  CHECK_EQ(View(x, "y = aten.add_.Scalar(x, 1)", "f32[2, 3, 4][12, 4, 1]cpu ~x"),
           "f32[2, 3, 4][24, 8, 2]cpu@5");
  CHECK_EQ(View("f32[2, 1, 4][8, 4, 2]cpu", "y = aten.squeeze.dim(x, 1)", "f32[2, 4][4, 1]cpu ~x"),
           "f32[2, 4][8, 2]cpu@0");
  CHECK_EQ(View("f32[2, 1, 4][8, 4, 2]cpu", "y = aten.expand.default(x, [5, 2, 3, 4])",
                "f32[5, 2, 3, 4][0, 4, 0, 1]cpu ~x"),
           "f32[5, 2, 3, 4][0, 8, 0, 2]cpu@0");
  CHECK_EQ(View("f32[2, 6][12, 2]cpu", "(a, b) = aten.split.Tensor(x, 4, 1) as y",
                "(f32[2, 4][6, 1]cpu, f32[2, 2][6, 1]cpu) ~(x, x)", 1),
           "f32[2, 2][12, 2]cpu@8");
  CHECK_EQ(View("f32[3, 4, 2][16, 4, 1]cpu", "y = aten.view_as_complex.default(x)",
                "c64[3, 4][4, 1]cpu ~x"),
           "c64[3, 4][8, 2]cpu@0");
}

TEST_CASE("a reshape is a view where dimensions follow each other in memory") {
  const std::string_view call = "y = aten.reshape.default(x, [6, 4])",
                         result = "f32[6, 4][4, 1]cpu ~x";
  CHECK_EQ(View("f32[2, 3, 4][24, 8, 2]cpu", call, result), "f32[6, 4][8, 2]cpu@0");
  CHECK_EQ(View("f32[2, 3, 4][12, 4, 1]cpu", call, result), "f32[6, 4][4, 1]cpu@0");
  CHECK_EQ(View("f32[2, 3, 4][4, 8, 1]cpu", call, result), "none");
  CHECK_EQ(View("f32[6, 4][8, 1]cpu", "y = aten.view.default(x, [2, 3, 1, 4])",
                "f32[2, 3, 1, 4][12, 4, 4, 1]cpu ~x"),
           "f32[2, 3, 1, 4][24, 8, 4, 1]cpu@0");
}

TEST_CASE("a view that is not known has no strides, rather than wrong ones") {
  CHECK_EQ(View("f32[4, 6][6, 1]cpu", "y = aten.unfold.default(x, 1, 2, 2)",
                "f32[4, 3, 2][6, 2, 1]cpu ~x"),
           "none");
  CHECK_EQ(View("f32[4, 6]cpu", "y = aten.t.default(x)", "f32[6, 4][1, 6]cpu ~x"), "none");
}

}  // namespace
}  // namespace strata
