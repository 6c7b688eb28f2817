#include "ir/verify.h"

#include <string>

#include <doctest/doctest.h>

#include "ir/rewriter.h"
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

TEST_CASE("a sound graph passes") {
  CHECK(Problem(*ParseOrDie(kGraph)->FindGraph("g")) == "");
}

TEST_CASE("a use before its definition is named") {
  auto module = ParseOrDie(kGraph);
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).MoveBefore(NodeNamed(graph, "b"), NodeNamed(graph, "a"));
  CHECK(Problem(graph) == "graph 'g', node 'b': reads 'a' before it is defined");
}

TEST_CASE("a node behind the output is named") {
  auto module = ParseOrDie(kGraph);
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).MoveBefore(NodeNamed(graph, "b"), NodeId{});
  CHECK(Problem(graph) == "graph 'g', node 'output': an output that is not last");
}

TEST_CASE("two nodes of one name are named") {
  auto module = ParseOrDie(kGraph);
  Graph& graph = *module->FindGraph("g");
  Rewriter(graph).SetName(NodeNamed(graph, "b"), "a");
  CHECK(Problem(graph) == "graph 'g', node 'a': the name 'a' is taken by another node");
}

TEST_CASE("a type with too few strides is named") {
  auto module = ParseOrDie(kGraph);
  Graph& graph = *module->FindGraph("g");
  Type type = module->types()[graph.value(ValueNamed(graph, "x")).type];
  type.strides.clear();
  Rewriter(graph).SetType(ValueNamed(graph, "a"), module->types().Intern(type));
  CHECK(Problem(graph) == "graph 'g', node 'a': 1 sizes but 0 strides");
}

TEST_CASE("an alias across devices is named") {
  auto module = ParseOrDie(R"(graph g
  x = placeholder : f32[2][1]cpu
  a = aten.view.default(x, [2]) : f32[2][1]cuda:0 ~x
  output([a])
)");
  CHECK(Problem(*module->FindGraph("g")) ==
        "graph 'g', node 'a': is on cuda:0 but aliases 'x' on cpu");
}

TEST_CASE("two nodes with one stable id are named") {
  auto module = ParseOrDie(R"(graph g
  x = placeholder #5
  a = aten.neg.default(x) #5
  output([a])
)");
  CHECK(Problem(*module->FindGraph("g")) ==
        "graph 'g', node 'a': its stable id belongs to another node too");
}

}  // namespace
}  // namespace strata
