#include "ir/verify.h"

#include <string>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
#include "ir/text/native_text.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::NodeNamed;
using testing::ParseOrDie;
using testing::ValueNamed;

constexpr std::string_view kGraph = R"(graph g
  x = placeholder : f32[2][1]cpu
  a = aten.relu.default(x)
  b = aten.neg.default(a)
  output([b])
)";

std::string Problem(const Graph& graph) {
  const Status status = Verify(graph);
  return status ? "" : status.error().message();
}

TEST_CASE("a valid graph passes") {
  CHECK(Problem(*ParseOrDie(kGraph)->FindGraph("g")) == "");
}

TEST_CASE("a use before its definition is reported") {
  auto module = ParseOrDie(kGraph);
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).MoveBefore(NodeNamed(graph, "b"), NodeNamed(graph, "a"));
  CHECK(Problem(graph) == "graph 'g', node 'b': reads 'a' before it is defined");
}

TEST_CASE("a node after the output is reported") {
  auto module = ParseOrDie(kGraph);
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).MoveBefore(NodeNamed(graph, "b"), NodeId{});
  CHECK(Problem(graph) == "graph 'g', node 'output': an output that is not last");
}

TEST_CASE("two nodes with one name are reported") {
  auto module = ParseOrDie(kGraph);
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).SetName(NodeNamed(graph, "b"), "a");
  CHECK(Problem(graph) == "graph 'g', node 'a': the name 'a' is taken by another node");
}

TEST_CASE("a type with too few strides is reported") {
  auto module = ParseOrDie(kGraph);
  Graph& graph = *module->FindGraph("g");
  Type type = module->types()[graph.value(ValueNamed(graph, "x")).type];
  type.strides.clear();
  Rewriter(graph).SetType(ValueNamed(graph, "a"), module->types().Intern(type));
  CHECK(Problem(graph) == "graph 'g', node 'a': 1 sizes but 0 strides");
}

TEST_CASE("an alias across devices is reported") {
  auto module = ParseOrDie(R"(graph g
  x = placeholder : f32[2][1]cpu
  a = aten.view.default(x, [2]) : f32[2][1]cuda:0 ~x
  output([a])
)");
  CHECK(Problem(*module->FindGraph("g")) ==
        "graph 'g', node 'a': is on cuda:0 but aliases 'x' on cpu");
}

TEST_CASE("a graph that contains itself is rejected by the reader and reported") {
  for (const char* text : {R"(graph g
  g = attr g(graph(0))
)",
                           R"(graph g
  b = attr b(graph(1))
graph b body
  call = mylib.call([(1, graph(2))])
graph c body
  call = mylib.call(x=graph(1))
)"}) {
    const auto module = ParseText(text, "loop.txt");
    REQUIRE_FALSE(module);
    CHECK(module.error().message().starts_with("loop.txt: graph '"));
    CHECK(module.error().message().ends_with("' contains itself"));
  }
}

TEST_CASE("bodies nest up to a limit, and several nodes may share a body") {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i)
      text +=
          fmt::format("graph b{0}\n  x = attr x(graph({1}))\n  y = attr x(graph({1}))\n", i, i + 1);
    return text + "graph last\n";
  };
  CHECK(ParseText(nested(kMaxBodyDepth)).has_value());
  const auto deeper = ParseText(nested(kMaxBodyDepth + 1), "deep.txt");
  REQUIRE_FALSE(deeper);
  CHECK(deeper.error().message() == "deep.txt: graph 'last' is nested more than 64 deep");
}

TEST_CASE("two nodes with one stable id are reported") {
  auto module = ParseOrDie("graph g\n  x = placeholder #5\n  output([x])\n");
  Rewriter(module->graph({0}))
      .Create({.op = "f", .name = "a", .stable_id = StableId{5}}, From::Source());
  CHECK(Problem(module->graph({0})) ==
        "graph 'g', node 'a': its stable id belongs to another node too");
}

}  // namespace
}  // namespace strata
