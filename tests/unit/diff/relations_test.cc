#include <doctest/doctest.h>

#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::Describe;
using testing::DiffCase;

std::string DescribeTexts(std::string_view before, std::string_view after) {
  return Describe(DiffCase(before, after).diff);
}

TEST_CASE("replace: a fused region, its consumer is derived") {
  CHECK_EQ(DescribeTexts(R"(
  b = placeholder
  x = placeholder
  w = placeholder
  m = aten.mm.default(x, w)
  a = aten.add.Tensor(m, b)
  s = aten.sin.default(a)
  output(s)
)",
                         R"(
  b = placeholder
  x = placeholder
  w = placeholder
  am = aten.addmm.default(b, x, w)
  s = aten.sin.default(am)
  output(s)
)"),
           R"(
s -> s: derived
  operands[0]: a -> am (derived)
- m
- a
+ am
replace m, a -> am
)");
}

TEST_CASE("replace: a folded constant") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  f = aten.full.default([2], 1)
  g = aten.neg.default(f)
  s = aten.add.Tensor(x, g)
  output(s)
)",
                         R"(
  x = placeholder
  c = attr _frozen_0
  s = aten.add.Tensor(x, c)
  output(s)
)"),
           R"(
s -> s: derived
  operands[1]: g -> c (derived)
- f
- g
+ c
replace f, g -> c
)");
}

TEST_CASE("merge: equal nodes become one, the consumer of the other is derived") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  a = aten.sin.default(x)
  b = aten.sin.default(x)
  s = aten.sub.Tensor(a, b)
  output(s)
)",
                         R"(
  x = placeholder
  a = aten.sin.default(x)
  s = aten.sub.Tensor(a, a)
  output(s)
)"),
           R"(
s -> s: derived
  operands[1]: b -> a (derived)
- b
merge a, b -> a
)");
}

TEST_CASE("clone: a consumer that reads the copy is changed while the original lives") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder
  a = aten.sin.default(x)
  s = aten.cos.default(a)
  t = aten.sub.Tensor(s, a)
  output(t)
)",
                         R"(
  x = placeholder
  a = aten.sin.default(x)
  s = aten.cos.default(a)
  a_1 = aten.sin.default(x)
  t = aten.sub.Tensor(s, a_1)
  output(t)
)"),
           R"(
t -> t: changed
  operands[1]: a -> a_1
+ a_1
clone a -> a, a_1
)");
}

TEST_CASE("became_input: a computation that another graph hands over") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder : f32[5]
  w = placeholder : f32[3]
  a = aten.sin.default(x) : f32[2]
  b = aten.cos.default(a) : f32[2]
  c = aten.sub.Tensor(b, w) : f32[3]
  d = aten.mul.Tensor(c, b) : f32[3]
  output(d)
)",
                         R"(
  b = placeholder : f32[2]
  w = placeholder : f32[3]
  c = aten.sub.Tensor(b, w) : f32[3]
  d = aten.mul.Tensor(c, b) : f32[3]
  output(d)
)"),
           R"(
c -> c: derived
  operands[0]: b -> b (derived)
d -> d: derived
  operands[1]: b -> b (derived)
- x
- a
- b
+ b
became_input b -> b
)");
}

TEST_CASE("became_compute: an input that is computed now") {
  CHECK_EQ(DescribeTexts(R"(
  x = placeholder : f32[5]
  b = placeholder : f32[2]
  c = aten.sub.Tensor(b, x) : f32[5]
  output(c)
)",
                         R"(
  x = placeholder : f32[5]
  b = aten.sin.default(x) : f32[2]
  c = aten.sub.Tensor(b, x) : f32[5]
  output(c)
)"),
           R"(
c -> c: derived
  operands[0]: b -> b (derived)
- b
+ b
became_compute b -> b
)");
}

}  // namespace
}  // namespace strata
