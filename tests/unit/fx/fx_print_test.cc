#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "ir/fingerprint.h"
#include "ir/fx/fx.h"
#include "ir/text/native_text.h"
#include "tests/unit/fx/fx_text.h"

namespace strata {
namespace {

using testing::Parse;
using testing::Program;

/// The FX text of a native text, which must read back as the same graph.
std::string FxOf(std::string_view native) {
  const Result<std::unique_ptr<Module>> module = ParseText(native);
  REQUIRE(module.has_value());
  const Graph& graph = (*module)->graph({0});
  std::string text = PrintFx(graph, {.comments = false, .frees = false});
  const Result<FxDocument> again = ParseFx(text, {.strict = true});
  REQUIRE_MESSAGE(again.has_value(), text);
  CHECK_EQ(ToString(FingerprintOf(again->graph())), ToString(FingerprintOf(graph)));
  return text;
}

TEST_CASE("fx: names that Python does not accept are replaced") {
  CHECK_EQ(FxOf(R"(
graph g
  %'x -> y' = placeholder
  class = aten.sin.default(%'x -> y')
  %'a b' = aten.sin.default(class)
  a_b = aten.sin.default(%'a b')
  (_, %'0') = aten.split.default(a_b) as %'q;q' : (f32[4], f32[4])
  output(%'0')
)"),
           R"(class GraphModule(torch.nn.Module):
    def forward(
        self,
        x____y,
    ):
        _class = torch.ops.aten.sin.default(x____y)
        a_b_1 = torch.ops.aten.sin.default(_class)
        a_b = torch.ops.aten.sin.default(a_b_1)
        q_q = torch.ops.aten.split.default(a_b)
        _0: "f32[4]" = q_q[1]
        return _0
)");
}

TEST_CASE("fx: a body with two names is printed as two classes") {
  const std::string text = FxOf(R"(
graph g
  x = placeholder
  a = attr a(graph(1))
  b = attr b(graph(1))
  y = higher_order.wrap(a, x)
  z = higher_order.wrap(b, y)
  output(z)
graph body body
  x = placeholder
  s = aten.sin.default(x)
  output(s)
)");
  CHECK_NE(text.find("    class a(torch.nn.Module):"), std::string::npos);
  CHECK_NE(text.find("    class b(torch.nn.Module):"), std::string::npos);
}

TEST_CASE("fx: symbols in arguments are bound where a value has them as a size") {
  const std::string native = R"(
symbol s0 hint=4
symbol s1 hint=6
graph g
  w = placeholder : f32[8, 8][8, 1]cpu
  x = placeholder : f32[s0, s1, 8][8*s1, 8, 1]cpu
  y = aten.view.default(x, [sym(s0*s1), 8]) : f32[s0*s1, 8][8, 1]cpu
  n = aten.nonzero.default(y) : i64[u0, 2][1, u0]cpu
  z = aten.view.default(n, [sym(2*u0)]) : i64[2*u0][1]cpu
  output(z)
)";
  const auto module = ParseText(native);
  REQUIRE(module.has_value());
  const std::string text = PrintFx((*module)->graph(GraphId{0}));
  CHECK_EQ(text, R"(class GraphModule(torch.nn.Module):
    def forward(
        self,
        w: "f32[8, 8][8, 1]cpu",
        x: "f32[s0, s1, 8][8*s1, 8, 1]cpu",
    ):
        s0 = x.shape[0]
        s1 = x.shape[1]
        y: "f32[s0*s1, 8][8, 1]cpu" = torch.ops.aten.view.default(x, [s0*s1, 8]);  x = None
        n: "i64[u0, 2][1, u0]cpu" = torch.ops.aten.nonzero.default(y);  y = None
        u0 = n.shape[0]
        z: "i64[2*u0][1]cpu" = torch.ops.aten.view.default(n, [2*u0]);  n = None
        return z
)");
  // The lines that bind are not nodes, and come back.
  const FxDocument document = Parse(text);
  CHECK_EQ(FingerprintOf(document.graph()), FingerprintOf((*module)->graph(GraphId{0})));
  CHECK_EQ(PrintFx(document.graph()), text);
}

TEST_CASE("fx: sizes that only types have are not bound, nor is what a log leaves unbound") {
  CHECK_EQ(FxOf(R"(
graph g
  x = placeholder : f32[s0][1]cpu
  y = aten.sin.default(x) : f32[s0][1]cpu
  output(y)
)")
               .find("shape"),
           std::string::npos);
  const std::string logged = Program("x: \"f32[s0]\"", R"(
        y: "f32[s0]" = torch.ops.aten.view.default(x, [s0 + 1]);  x = None
        return y
)");
  const FxDocument document = Parse(logged);
  CHECK_EQ(PrintFx(document.graph()).find("shape"), std::string::npos);
  CHECK(UnboundSymbols(document.graph()).empty());
}

TEST_CASE("fx: symbols that no value has as a size stay unbound") {
  const auto module = ParseText(R"(
graph g
  x = placeholder : f32[2*s0][1]cpu
  y = aten.view.default(x, [sym(s0), 2, sym(s1)]) : f32[s0, 2][2, 1]cpu
  output(y)
)");
  REQUIRE(module.has_value());
  CHECK_EQ(UnboundSymbols((*module)->graph(GraphId{0})), std::vector<std::string>{"s1"});
}

}  // namespace
}  // namespace strata
