#include "tlparse-export/review/svg.h"

#include <doctest/doctest.h>

#include "tests/support/random_graph.h"
#include "tests/unit/diff/mutate.h"
#include "tests/unit/diff/support.h"

namespace strata {
namespace {

using testing::DiffCase;
using testing::OrDie;

size_t Count(std::string_view text, std::string_view what) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string_view::npos; at += what.size())
    ++count;
  return count;
}

TEST_CASE("a picture contains the changed nodes and their neighbours") {
  const DiffCase c(R"(
    x = placeholder : f32[4]
    far = aten.sin.default(x) : f32[4]
    near = aten.cos.default(far) : f32[4]
    drop = aten.dropout.default(near) : f32[4]
    next = aten.tan.default(drop) : f32[4]
    end = aten.exp.default(next) : f32[4]
    output(end)
  )",
                   R"(
    x = placeholder : f32[4]
    far = aten.sin.default(x) : f32[4]
    near = aten.cos.default(far) : f32[4]
    next = aten.tan.default(near) : f32[4]
    end = aten.exp.default(next) : f32[4]
    output(end)
  )");
  const std::string svg = ChangeSvg(c.diff);
  // drop goes, next reads another operand, near and end stand beside them.
  CHECK_EQ(Count(svg, "<g>"), 4);
  CHECK_EQ(svg.find("far ="), std::string::npos);
  CHECK_NE(svg.find("<title>drop = aten.dropout.default(near)</title>"), std::string::npos);
  CHECK_EQ(Count(svg, ">−</text>"), 1);
  CHECK_EQ(Count(svg, ">~</text>"), 1);
}

TEST_CASE("no change, no boxes") {
  const DiffCase c("x = placeholder\noutput(x)", "x = placeholder\noutput(x)");
  const std::string svg = ChangeSvg(c.diff);
  CHECK_EQ(Count(svg, "<g>"), 0);
  CHECK_NE(svg.find("no differences"), std::string::npos);
}

TEST_CASE("names are escaped as text") {
  const DiffCase c(
      "x = placeholder\noutput(x)",
      "x = placeholder\n%'</title><script>alert(1)</script>&\"' = aten.sin.default(x)\n"
      "output(%'</title><script>alert(1)</script>&\"')");
  const std::string svg = ChangeSvg(c.diff);
  CHECK_EQ(svg.find("<script"), std::string::npos);
  CHECK_NE(svg.find("&lt;/title&gt;&lt;script&gt;"), std::string::npos);
}

TEST_CASE("a large change is drawn partially, and the picture says so") {
  const auto before = testing::RandomGraph(1, {.num_nodes = 3000});
  const auto after = before->Clone();
  testing::Mutate(*after, testing::Mutation::kReplaceOp, 0.3, 1);
  const GraphDiff diff = OrDie(Diff(before->graph({0}), after->graph({0})));
  const std::string svg = ChangeSvg(diff, {.max_nodes = 50});
  CHECK_EQ(Count(svg, "<g>"), 50);
  CHECK_NE(svg.find("more changed nodes are not drawn"), std::string::npos);
  CHECK_EQ(svg, ChangeSvg(diff, {.max_nodes = 50}));
}

}  // namespace
}  // namespace strata
