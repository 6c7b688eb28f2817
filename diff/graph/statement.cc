#include "diff/graph/statement.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/unicode.h"
#include "diff/graph/arguments.h"
#include "ir/module.h"

namespace strata {

std::string StatementText(const Listing& listing, EntityId id) {
  const Entity& entity = listing[id];
  const Graph& graph = listing.graph(id);
  const std::string name = listing.name(id);
  if (entity.kind == EntityKind::kInput) return Visible(name + " (input)");
  if (entity.element.valid()) {
    return Visible(fmt::format("{} = {}[{}]", name, graph.name(entity.node),
                               graph.result_index(entity.element)));
  }
  if (entity.kind == EntityKind::kConstant) {
    return Visible(fmt::format("{} = self.{}", name, listing.target(id)));
  }
  std::vector<std::string> arguments;
  for (const Arg& arg : graph.args(entity.node))
    arguments.push_back(LiteralText(graph, arg));
  for (size_t i = 0; i < graph.node(entity.node).num_kwargs; ++i) {
    const NamedArg kwarg = graph.kwarg(entity.node, i);
    arguments.push_back(
        fmt::format("{}={}", graph.module().str(kwarg.name), LiteralText(graph, kwarg.value)));
  }
  // As an element is written, which other texts have instead.
  if (arguments.size() == 2 && listing.target(id) == "_operator.getitem" && !arguments[0].empty()) {
    return Visible(fmt::format("{} = {}[{}]", name, arguments[0], arguments[1]));
  }
  const std::string call = fmt::format("({})", fmt::join(arguments, ", "));
  if (entity.kind == EntityKind::kOutput) return Visible(name + call);
  return Visible(fmt::format("{} = {}{}", name, listing.target(id), call));
}

std::string AnnotationText(const Listing& listing, EntityId id) {
  const ValueId value = listing.value(id);
  if (!value.valid()) return "";
  const TypeId type = listing.graph(id).value(value).type;
  return type.valid() ? Visible(listing.root().module().types().ToString(type)) : "";
}

std::string ModuleText(const Listing& listing, EntityId id) {
  const Graph& graph = listing.graph(id);
  return Visible(graph.module().str(graph.node(listing[id].node).module));
}

}  // namespace strata
