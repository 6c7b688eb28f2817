#include "scene/words.h"

#include <cmath>

#include <doctest/doctest.h>

namespace strata {
namespace {

TEST_CASE("numbers, times and sizes are short and have units") {
  CHECK(NumberText(1288) == "1,288");
  CHECK(NumberText(-1234567) == "−1,234,567");
  CHECK(RealText(-0.000312) == "−0.000312");
  CHECK(RealText(-3.3e-7, 2) == "−3.3e−07");
  CHECK(RealText(std::nan("")) == "not finite");
  CHECK(NumberText(12) == "12");
  CHECK(Plural(1, "node") == "1 node");
  CHECK(Plural(2, "pass", "passes") == "2 passes");
  CHECK(TimeText(0) == "–");
  CHECK(TimeText(0.0123) == "12 µs");
  CHECK(TimeText(4.4) == "4.4 ms");
  CHECK(TimeText(1500) == "1.5 s");
  CHECK(BytesText(1536) == "1.50 KiB");
  CHECK(FlopsText(2e9) == "2.00 GFLOP");
}

TEST_CASE("operators lose namespace and default overload") {
  CHECK(ShortOperator("aten.mm.default") == "mm");
  CHECK(ShortOperator("aten.mul.Tensor") == "mul");
  CHECK(ShortOperator("aten.add.out") == "add.out");
  CHECK(ShortOperator("_c10d_functional.wait_tensor.default") == "wait_tensor");
  CHECK(ShortOperator("mylib.op") == "mylib.op");
  CHECK(ShortOperator("input") == "input");
  CHECK(ShortOperator("") == "");
}

TEST_CASE("types are drawn as data type and shape") {
  CHECK(ShortType("bf16[256, 64][64, 1]cpu") == "bf16 [256, 64]");
  CHECK(ShortType("dtensor(bf16[8][1]cpu, S(0))") == "bf16 [8]");
  CHECK(ShortType("Sym(s0)") == "Sym(s0)");
  CHECK(DtypeOf("f32[4][1]cpu") == "f32");
  CHECK(ShapeOf("f32[4][1]cpu") == "[4]");
  CHECK(DtypeOf("tuple").empty());
  CHECK(PlacementsOf("DTensor(f32[4, 8][8, 1]cuda:0, S(0)P(sum))") == "S(0)P(sum)");
  CHECK(PlacementsOf("DTensor(bf16[]cpu, R_S(0, 2))") == "R_S(0, 2)");
  CHECK(PlacementsOf("Parameter(f32[4][1]cpu)").empty());
  CHECK(PlacementsOf("f32[4, 8][8, 1]cpu").empty());
}

TEST_CASE("titles of changes are written in the past tense") {
  CHECK(PastTense("insert aten.mm.default before aten.t.default") == "Added mm before t");
  CHECK(PastTense("delete aten.t.default") == "Removed t");
  CHECK(PastTense("change aten.view.default to aten.reshape.default") == "view became reshape");
  CHECK(PastTense("replace a by b") == "a became b");
  CHECK(PastTense("change args[1]") == "Changed args[1]");
}

TEST_CASE("counts have signs, and derived changes come last") {
  CHECK(CountsText({.nodes = 9, .added = 1200, .removed = 3, .derived = 4}) ==
        "+1,200 −3 ~4 derived");
  CHECK(CountsText({}) == "");
}

}  // namespace
}  // namespace strata
