#include "passes/expert/chunk_roots.h"

#include <algorithm>
#include <set>

#include "ir/module.h"
#include "ir/ops.h"
#include "passes/expert/exchange_labels.h"
#include "passes/memory/selectors.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

/// The first `count` parts of a module path; none if it has fewer.
std::string_view FirstParts(std::string_view module, std::ptrdiff_t count) {
  size_t end = 0;
  for (; count > 0; --count) {
    if (end > module.size()) return {};
    const size_t dot = module.find('.', end);
    end = (dot == std::string_view::npos ? module.size() : dot) + 1;
  }
  return module.substr(0, end - 1);
}

bool IsExpertWork(const Graph& graph, NodeId node) {
  return !graph.attribute(node, "EP").empty() ||
         !graph.attribute(node, kExchangeAttribute).empty() ||
         HasPart(ModuleOf(graph, node), "moe");
}

}  // namespace

bool HasPart(std::string_view module, std::string_view part) {
  while (true) {
    const size_t dot = module.find('.');
    if (module.substr(0, dot) == part) return true;
    if (dot == std::string_view::npos) return false;
    module.remove_prefix(dot + 1);
  }
}

bool IsInside(std::string_view module, std::string_view root) {
  return module.starts_with(root) && (module.size() == root.size() || module[root.size()] == '.');
}

std::string_view ModuleAround(std::string_view module) {
  const size_t dot = module.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : module.substr(0, dot);
}

bool IsTokenExchange(const Graph& graph, NodeId node) {
  return graph.node(node).kind == NodeKind::kCall && TraitsOf(graph.op(node)).collective &&
         BaseName(graph.op(node)).starts_with("all_to_all");
}

ChunkRoots::ChunkRoots(Graph& graph, std::string_view pattern) {
  const auto parts = std::ranges::count(pattern, '.') + 1;
  StringTable& strings = graph.module().strings();
  std::set<StrId> seen, roots;
  for (const NodeId node : graph.nodes()) {
    const StrId module = graph.node(node).module;
    if (!module.valid() || !seen.insert(module).second) continue;
    const std::string_view first = FirstParts(strings[module], parts);
    if (first.empty() || !MatchesModule(pattern, first)) continue;
    const StrId root = graph.module().Intern(first);
    root_of_.emplace(module, root);
    roots.insert(root);
  }
  roots_.assign(roots.begin(), roots.end());
  std::ranges::sort(roots_, {}, [&](StrId root) {
    return std::pair(std::ranges::count(strings[root], '.'), strings[root]);
  });
}

StrId ChunkRoots::RootOf(const Graph& graph, NodeId node) const {
  const auto found = root_of_.find(graph.node(node).module);
  return found == root_of_.end() ? StrId{} : found->second;
}

Status ChunkRoots::KeepExperts(const Graph& graph, bool require_all_to_all) {
  std::set<StrId> exchanging, working;
  for (const NodeId node : graph.nodes()) {
    const StrId root = RootOf(graph, node);
    if (!root.valid()) continue;
    if (IsTokenExchange(graph, node)) exchanging.insert(root);
    if (exchanging.empty() && IsExpertWork(graph, node)) working.insert(root);
  }
  if (exchanging.empty() && require_all_to_all)
    return Error(
        "No EP all-to-all regions matched: graph {}: take another module_fqn, or do not "
        "require all-to-alls",
        graph.name_text());
  const std::set<StrId>& kept = exchanging.empty() ? working : exchanging;
  if (kept.empty()) {
    return Error("No EP regions matched: graph {}: take another module_fqn", graph.name_text());
  }
  std::erase_if(roots_, [&](StrId root) { return !kept.contains(root); });
  std::erase_if(root_of_, [&](const auto& entry) { return !kept.contains(entry.second); });
  return Ok();
}

}  // namespace strata
