#include "tests/support/graphs.h"

#include <cstdio>
#include <cstdlib>

#include "ir/text/native_text.h"

namespace strata::testing {

std::unique_ptr<Module> ParseOrDie(std::string_view text) {
  Result<std::unique_ptr<Module>> module = ParseText(text);
  if (!module) {
    std::fprintf(stderr, "%s\n", module.error().message().c_str());
    std::abort();
  }
  return std::move(module).value();
}

std::unique_ptr<Module> ParseBody(std::string_view body) {
  return ParseOrDie(fmt::format("graph g\n{}", body));
}

std::string BodyOf(const Module& module) {
  const Graph* graph = module.FindGraph("g");
  STRATA_CHECK(graph, "no graph 'g'");
  const std::string text = PrintText(*graph, {.types = false, .metadata = false});
  return text.substr(text.find('\n'));
}

NodeId NodeNamed(const Graph& graph, std::string_view name) {
  for (NodeId id : graph.nodes()) {
    if (graph.name(id) == name) return id;
  }
  std::fprintf(stderr, "no node named '%.*s'\n", static_cast<int>(name.size()), name.data());
  std::abort();
}

ValueId ValueNamed(const Graph& graph, std::string_view name) {
  for (const NodeId node : graph.nodes()) {
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      if (graph.value_name(graph.result(node, i)) == name) return graph.result(node, i);
    }
  }
  return graph.result(NodeNamed(graph, name));
}

std::string TypeOf(const Module& module, std::string_view value) {
  const Graph& graph = *module.FindGraph("g");
  return module.types().ToString(graph.value(ValueNamed(graph, value)).type);
}

}  // namespace strata::testing
