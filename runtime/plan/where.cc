#include "runtime/plan/where.h"

#include <string_view>

#include <fmt/format.h>

#include "ir/module.h"

namespace strata {

std::string WhereOf(const Graph& graph, NodeId node) {
  const Module& module = graph.module();
  const Node& n = graph.node(node);
  const std::string_view path = module.str(n.module);
  std::string where(path.empty() ? graph.name(node) : path);
  if (n.loc.valid()) {
    const SourceLoc& loc = module.loc(n.loc);
    where += fmt::format(" ({}:{})", module.str(loc.file), loc.line);
  }
  return where;
}

}  // namespace strata
