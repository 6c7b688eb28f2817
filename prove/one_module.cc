#include "prove/one_module.h"

#include <map>
#include <string>

#include "ir/text/native_text.h"

namespace strata::prove {
namespace {

/// Appends a graph and the bodies that it calls, each once.
Status AppendText(const Graph& graph, std::map<std::string, std::string>& bodies,
                  std::string& out) {
  const PrintOptions options{.stable_ids = true};
  PrintText(graph, options, out);
  const Module& module = graph.module();
  const auto append_body = [&](auto&& self, const Arg& arg) -> Status {
    if (arg.is_span()) {
      for (const Arg& element : graph.elements(arg))
        STRATA_RETURN_IF_ERROR(self(self, element));
    }
    if (arg.kind() != ArgKind::kGraph) return Ok();
    const Graph& body = module.graph(arg.graph());
    const std::string text = PrintText(body, {.stable_ids = false});
    const auto [known, is_new] = bodies.emplace(body.name_text(), text);
    if (!is_new && known->second != text)
      return Error(ErrorCode::kUnsupported, "two bodies are called {}", body.name_text());
    return is_new ? AppendText(body, bodies, out) : Ok();
  };
  for (const NodeId node : graph.nodes()) {
    for (const Arg& arg : graph.args(node))
      STRATA_RETURN_IF_ERROR(append_body(append_body, arg));
    for (size_t i = 0; i < graph.node(node).num_kwargs; ++i)
      STRATA_RETURN_IF_ERROR(append_body(append_body, graph.kwarg(node, i).value));
  }
  return Ok();
}

}  // namespace

Result<std::unique_ptr<Module>> InOneModule(std::span<const Graph* const> graphs) {
  std::string text;
  std::map<std::string, std::string> bodies;
  for (const Graph* graph : graphs)
    STRATA_RETURN_IF_ERROR(AppendText(*graph, bodies, text));
  STRATA_TRY(std::unique_ptr<Module> module, ParseText(text));
  for (const Graph* graph : graphs) {
    const Module& from = graph->module();
    for (Symbol symbol : from.dims().symbols()) {
      symbol.name = module->Intern(from.str(symbol.name));
      module->dims().SetSymbol(symbol);
    }
  }
  return module;
}

}  // namespace strata::prove
