#include "ir/text/native_text.h"

#include <string>

#include <doctest/doctest.h>

#include "base/python_literal.h"
#include "ir/fingerprint.h"
#include "ir/verify.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::ParseOrDie;

std::string RoundTrip(std::string_view text) {
  return PrintText(*ParseOrDie(text), {.stable_ids = true});
}

std::string Problem(std::string_view text) {
  auto module = ParseText(text, "t.graph");
  return module ? "" : module.error().message();
}

TEST_CASE("every kind of argument, node and metadata reads back") {
  const std::string text = R"(symbol s0 hint=4 min=2 max=64
symbol u0 unbacked
graph step foreign
  x = placeholder : f32[s0, 8][8, 1]cpu@(16)+grad {module=embed} #1 line=3
  n = placeholder : Sym(s0) #2
  body_0 = attr body_0(graph(1)) #3
  w = attr %'self.we ird' : DTensor(f32[4, 4][4, 1]cpu, S(0)) #4
  y = aten.to.dtype(x, torch.bfloat16, None, True, False, -3, 1e-05, 0.5, 3.0, inf, -inf, 'it\'s "q"\n', device('cuda:0'), raw('torch.strided'), sym(2*s0), layout=raw('torch.strided')) : bf16[s0, 8] ~x {forward module=layers.0.attention seq=3 stream=1 loc=('a b.py', 12, 'fn', "code = '1'") +chunk='2' +recompute='must save'} #5
  (a, _, b) = aten.split.Tensor(y, [1, (2,), (), [], {'k': x, 1: None}], call('slice', None, n, 2)) as split : (f32[4], ?, f32[8][1]cuda:0) {backward} #6
  z = method view(y, -1) #7
  m = submodule layers.0(z) #8
  o = higher_order.cond(a, body_0, split$1) : opaque('weird <type>, a=1') {optimizer} #9
  %'na me' = aten.neg.default(o) #10
  output([b, %'na me', m]) #11
graph body_0 body
  p = placeholder {loss} #12
  output(p) as ret #13
)";
  CHECK(RoundTrip(text) == text);
  CHECK(Verify(*ParseOrDie(text)).has_value());
}

TEST_CASE("an offset may be any expression") {
  const std::string text =
      "graph g\n  x = placeholder : f32[u1, 4][4, 1]cpu@(4*u0 + 4*(u1//2)) #1\n"
      "  output(x) #2\n";
  CHECK(RoundTrip(text).ends_with(text));
  CHECK(Problem("graph g\n  x = placeholder : f32[2][1]cpu@(4\n  output(x)\n")
            .find("expected '@(offset)'") != std::string::npos);
}

TEST_CASE("types and metadata may be missing, comments and blank lines are skipped") {
  const std::string text = R"(
// a comment
graph g

  x = placeholder  // trailing
  output(x)
)";
  CHECK(PrintText(*ParseOrDie(text)) == "graph g\n  x = placeholder\n  output(x)\n");
}

TEST_CASE("printing options omit parts") {
  auto module = ParseOrDie("graph g\n  x = placeholder : f32[2][1]cpu {forward} #9\n  output(x)\n");
  CHECK(PrintText(*module, {.types = false, .metadata = false}) ==
        "graph g\n  x = placeholder\n  output(x)\n");
}

TEST_CASE("missing ids are created, given ids are kept and not reused") {
  auto module =
      ParseOrDie("graph g\n  x = placeholder #41\n  y = aten.neg.default(x)\n  output(y)\n");
  CHECK(PrintText(*module, {.stable_ids = true}) ==
        "graph g\n  x = placeholder #41\n  y = aten.neg.default(x) #42\n  output(y) #43\n");
}

TEST_CASE("hostile names read back unchanged") {
  for (const std::string& name :
       {std::string("None"), std::string("_"), std::string("0x"), std::string("a.b"),
        std::string("'"), std::string("\"'\\"), std::string("</script>"), std::string("\x01\n\t\r"),
        std::string("\xff\xfe"), std::string("ünïcode"), std::string("output"),
        std::string("//")}) {
    CAPTURE(name);
    std::string quoted;
    AppendQuoted(name, quoted);
    const std::string text = "graph g\n  %" + quoted + " = placeholder\n  y = %" + quoted + "(%" +
                             quoted + ")\n  output(y) as ret\n";
    auto module = ParseOrDie(text);
    const Graph& graph = module->graph({0});
    CHECK(graph.name(graph.first()) == name);
    CHECK(PrintText(*ParseOrDie(PrintText(*module))) == PrintText(*module));
  }
}

TEST_CASE("numbers are printed as in Python") {
  const auto print = [](double value) {
    std::string out;
    AppendFloat(value, out);
    return out;
  };
  CHECK(print(1.0) == "1.0");
  CHECK(print(-0.0) == "-0.0");
  CHECK(print(0.1) == "0.1");
  CHECK(print(1e-5) == "1e-05");
  CHECK(print(1.1920928955078125e-07) == "1.1920928955078125e-07");
  CHECK(print(0.0001) == "0.0001");
  CHECK(print(1e15) == "1000000000000000.0");
  CHECK(print(1e16) == "1e+16");
  CHECK(print(123456789.125) == "123456789.125");
}

TEST_CASE("errors name the position and show the line with a caret") {
  CHECK(Problem("graph g\n  x = placeholder\n  y = aten.neg.default(z)\n") ==
        "t.graph:3:24: no value 'z' above\n"
        "    y = aten.neg.default(z)\n"
        "                         ^");
  CHECK(Problem("") == "t.graph:1:1: no graph here: write 'graph NAME' and its nodes\n  \n  ^");
  CHECK(Problem("symbol s0 hint=4\n").find("no graph here") != std::string::npos);
  CHECK(Problem("graph g\n  x = placeholder #7\n  y = placeholder #07\n") ==
        "t.graph:3:19: this id is another node's\n    y = placeholder #07\n                    ^");
  CHECK(Problem("hello") == "t.graph:1:1: expected 'graph NAME'\n  hello\n  ^");
  CHECK(Problem("graph g\n  x = placeholder\n  x = placeholder\n") ==
        "t.graph:3:3: the name 'x' is taken by an earlier node\n"
        "    x = placeholder\n"
        "    ^");
  CHECK(Problem("graph g\n  x = f(1, k=2, 3)\n")
            .starts_with("t.graph:2:17: a positional argument after a keyword argument\n"));
  CHECK(Problem("graph g\n  x = f(99999999999999999999)\n")
            .starts_with("t.graph:2:9: this number exceeds 64 bits\n"));
  CHECK(Problem("graph g\n  x = f('abc)\n").starts_with("t.graph:2:9: this quote is not closed\n"));
  CHECK(Problem("graph g\n  x = f() {speed=1}\n").find("unknown metadata") != std::string::npos);
  CHECK(Problem("graph g\n  x = f(graph(3))\n").find("out of range") != std::string::npos);
  CHECK(Problem("graph g\n  output()\n  x = f()\n").find("a node after the output") !=
        std::string::npos);
}

TEST_CASE("deep nesting is an error, not a crash") {
  const std::string deep = "graph g\n  x = f(" + std::string(100'000, '[') + ")\n";
  CHECK(Problem(deep).find("nested too deeply") != std::string::npos);
}

}  // namespace
}  // namespace strata
