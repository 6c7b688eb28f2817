#include "passes/expert/concretize.h"

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::ParseOrDie;

/// Graph `g` after the pass, with types.
std::string After(std::string_view text) {
  const auto module = ParseOrDie(text);
  CHECK_EQ(OrDie(Concretize().Run(*module)), Changed::kYes);
  CHECK_OK(Verify(*module));
  std::string printed = PrintText(*module);
  return printed.substr(printed.find("graph "));
}

TEST_CASE("CZ-01: bodies of higher-order nodes become concrete, too") {
  CHECK_EQ(After(R"(symbol u0 hint=4
graph inner body
  a = placeholder : f32[u0, 3][3, 1]cpu
  b = aten.neg.default(a) : f32[u0, 3][3, 1]cpu
  output([b])
graph g
  x = placeholder : f32[u0, 3][3, 1]cpu
  body = attr inner_0(graph(0)) : ?
  (y,) = higher_order.invoke(body, x) as h : (f32[u0, 3][3, 1]cpu)
  output([y])
)"),
           R"(graph inner body
  a = placeholder : f32[4, 3][3, 1]cpu
  b = aten.neg.default(a) : f32[4, 3][3, 1]cpu
  output([b])
graph g
  x = placeholder : f32[4, 3][3, 1]cpu
  body = attr inner_0(graph(0))
  (y,) = higher_order.invoke(body, x) as h : (f32[4, 3][3, 1]cpu,)
  output([y])
)");
}

TEST_CASE("CZ-02, CZ-05: integers become literals, and what computed them goes") {
  CHECK_EQ(After(R"(symbol b hint=4
graph g
  x = placeholder : f32[256*b, 3][3, 1]cpu
  n = aten.sym_size.int(x, 0) : Sym(256*b)
  s = aten.slice.Tensor(x, 0, 0, n) : f32[u9, 3][3, 1]cpu ~x
  output([s, n])
)"),
           R"(graph g
  x = placeholder : f32[1024, 3][3, 1]cpu
  s = aten.slice.Tensor(x, 0, 0, 1024) : f32[u9, 3][3, 1]cpu ~x
  output([s, 1024])
)");
}

TEST_CASE("CZ-03: strides are substituted, foreign symbols stay, true assertions go") {
  CHECK_EQ(After(R"(symbol b hint=4
graph g
  x = placeholder : f32[b, 4096, 16, 192][12582912, 3072, 192, 1]cpu
  f = placeholder : f32[3][1]cpu
  t = aten.transpose.int(x, 1, 2) : f32[b, 16, 4096, 192][12582912, 192, 3072, 1]cpu ~x
  n = aten.sym_size.int(x, 0) : Sym(b)
  ge = _operator.ge(n, 0) : Sym(b >= 0)
  a = aten._assert_scalar.default(ge, 'positive') : ?
  m = aten.nonzero.default(f) : i64[b + u7, 1][1, 1]cpu
  output([t, m])
)"),
           R"(graph g
  x = placeholder : f32[4, 4096, 16, 192][12582912, 3072, 192, 1]cpu
  f = placeholder : f32[3][1]cpu
  t = aten.transpose.int(x, 1, 2) : f32[4, 16, 4096, 192][12582912, 192, 3072, 1]cpu ~x
  m = aten.nonzero.default(f) : i64[u7 + 4, 1][1, 1]cpu
  output([t, m])
)");
}

TEST_CASE("CZ-04: an assertion that does not hold is an error") {
  CHECK_EQ(MessageOf(Concretize().Run(*ParseOrDie(R"(symbol u0 hint=4
graph g
  x = placeholder : f32[u0][1]cpu
  n = aten.sym_size.int(x, 0) : Sym(u0)
  eq = _operator.eq(n, 8) : Sym(Eq(u0, 8))
  a = aten._assert_scalar.default(eq, 'size is 8') : ?
  output([x])
)"))),
           "an assertion evaluates to False: graph g: node a: size is 8");
}

TEST_CASE("CZ-06: all symbols of inputs that have a hint go") {
  CHECK_EQ(After(R"(symbol b hint=4
symbol s hint=8
graph g
  x = placeholder : f32[b, s][s, 1]cpu
  v = aten.view.default(x, [sym(b*s)]) : f32[b*s][1]cpu ~x
  output([v])
)"),
           R"(graph g
  x = placeholder : f32[4, 8][8, 1]cpu
  v = aten.view.default(x, [32]) : f32[32][1]cpu ~x
  output([v])
)");
}

TEST_CASE("types of whole tensors that lowering keeps as text become concrete, too") {
  const auto module = ParseOrDie(R"(symbol s0 hint=4
graph g
  x = placeholder : f32[s0, 3][3, 1]cpu {+global='f32[2*s0, 3][3, 1]cpu'}
  output([x])
)");
  OrDie(Concretize().Run(*module));
  const Graph& graph = *module->FindGraph("g");
  CHECK_EQ(graph.attribute(testing::NodeNamed(graph, "x"), "global"), "f32[8, 3][3, 1]cpu");
}

TEST_CASE("a graph without symbols stays as it is") {
  const auto module = ParseOrDie("graph g\n  x = placeholder : f32[4][1]cpu\n  output([x])\n");
  CHECK_EQ(OrDie(Concretize().Run(*module)), Changed::kNo);
}

}  // namespace
}  // namespace strata
