#include "cli/render/diff_columns.h"

#include <doctest/doctest.h>

#include "diff/diff.h"
#include "tests/support/graphs.h"

namespace strata::cli {
namespace {

using testing::OrDie;
using testing::ParseBody;

std::string Columns(std::string_view before, std::string_view after, DiffColumnsOptions options) {
  const auto a = ParseBody(before), b = ParseBody(after);
  return DiffColumns(OrDie(Diff(a->graph({0}), b->graph({0}))), "a", "b", options);
}

constexpr std::string_view kBefore = R"(
  x = placeholder : f32[8]
  n1 = aten.neg.default(x) : f32[8]
  n2 = aten.neg.default(n1) : f32[8]
  drop = aten.dropout.default(n2, 0.5) : f32[8]
  v = aten.view.default(drop, [4, 2]) : f32[4, 2]
  s = aten.sum.default(v) : f32[]
  c = aten.cos.default(x) : f32[8]
  output([s, c])
)";
constexpr std::string_view kAfter = R"(
  x = placeholder : f32[8]
  n1 = aten.neg.default(x) : f32[8]
  n3 = aten.neg.default(n1) : f32[8]
  c = aten.cos.default(x) : f32[8]
  v = aten.view.default(n3, [2, 4]) : f32[2, 4]
  s = aten.sum.default(v) : f32[]
  t = aten.tan.default(s) : f32[]
  output([t, c])
)";

TEST_CASE("each node stands beside what it became, differences are marked") {
  CHECK_EQ("\n" + Columns(kBefore, kAfter, {.width = 90, .context = 1}), R"(
a                                             b
⋯ 2 nodes
n2 = aten.neg.default(n1)                     n3 = aten.neg.default(n1)
drop = aten.dropout.default(n2, 0.5)        -
c = aten.cos.default(x)                     ↷ c = aten.cos.default(x)
v = aten.view.default(drop, [4, 2])  : f32[ ~ v = aten.view.default(n3, [2, 4])  : f32[2,
                      ^^^^   ^  ^                                   ^^   ^  ^          ^
    4, 2]                                          4]
    ^  ^                                           ^
s = aten.sum.default(v)                       s = aten.sum.default(v)
                                            + t = aten.tan.default(s)
output([s, c])                              ~ output([t, c])
        ^                                             ^
)");
}

TEST_CASE("a wide character takes two columns, an escape none of the terminal's") {
  const std::string text = Columns(
      "%'漢字漢字漢字漢字漢字漢字漢字' = placeholder\noutput(%'漢字漢字漢字漢字漢字漢字漢字')",
      "%'\\x1b[31m' = placeholder\noutput(%'\\x1b[31m')", {.width = 50, .all = true});
  CHECK_EQ("\n" + text, R"(
a                         b
漢字漢字漢字漢字漢字漢    \x1b[31m (input)
    字漢字 (input)
output(漢字漢字漢字漢字   output(\x1b[31m)
    漢字漢字漢字)
)");
}

TEST_CASE("colours say what carets say") {
  const std::string text = Columns(kBefore, kAfter, {.colours = true, .width = 120});
  CHECK_NE(text.find("\x1b[38;5;166mdrop = aten.dropout.default(n2, 0.5)\x1b[0m"),
           std::string::npos);
  CHECK_NE(text.find("\x1b[4;38;5;36mt\x1b[0m"), std::string::npos);
  CHECK_EQ(text.find('^'), std::string::npos);
}

}  // namespace
}  // namespace strata::cli
