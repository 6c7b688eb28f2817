#include "tlparse-export/torch_trace/read/input_paths.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "ir/rewriter.h"
#include "ir/stated_path.h"

namespace strata {
namespace {

/// Backward graphs of a compilation come late, after other compilations.
constexpr size_t kRememberedPaths = 64;

/// The number of Dynamo's input that an input of AOTAutograd is, or is made of.
std::optional<size_t> DynamoInputOf(const Graph& graph, NodeId id) {
  constexpr std::string_view kPlain = "PlainAOTInput(idx=";
  const std::string_view descriptor = graph.attribute(id, "descriptor");
  const size_t at = descriptor.find(kPlain);
  if (at == std::string_view::npos || descriptor.starts_with("Tangent")) return std::nullopt;
  const std::string_view digits = descriptor.substr(at + kPlain.size());
  size_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  return error == std::errc() ? std::optional(index) : std::nullopt;
}

std::vector<NodeId> InputsOf(const Graph& graph) {
  std::vector<NodeId> inputs;
  for (NodeId id : graph.nodes()) {
    if (graph.node(id).kind == NodeKind::kPlaceholder) inputs.push_back(id);
  }
  return inputs;
}

/// Two modules of a function, `a(b(x))`, have parameters of one path: it is the name of neither.
void ClearAmbiguous(std::vector<std::string>& paths) {
  std::map<std::string, int> counts;
  for (const std::string& path : paths)
    ++counts[path];
  for (std::string& path : paths)
    if (counts[path] > 1) path.clear();
}

}  // namespace

void InputPaths::Learn(std::string_view compile, const Graph& graph) {
  if (compile.empty()) return;
  std::vector<std::string> paths;
  std::vector<std::pair<std::string, size_t>> numbered;
  for (NodeId id : InputsOf(graph)) {
    paths.push_back(StatedPath(graph, id));
    if (const auto index = DynamoInputOf(graph, id)) numbered.emplace_back(graph.name(id), *index);
  }
  const bool states_paths =
      std::ranges::any_of(paths, [](const std::string& path) { return !path.empty(); });
  const auto known = std::ranges::find(compilations_, compile, &Compilation::id);
  if (known == compilations_.end()) {
    if (!states_paths || !numbered.empty()) return;
    ClearAmbiguous(paths);
    if (compilations_.size() == kRememberedPaths) compilations_.pop_front();
    compilations_.push_back(
        {.id = std::string(compile), .dynamo = std::move(paths), .by_name = {}});
    return;
  }
  for (auto& [name, index] : numbered) {
    if (index >= known->dynamo.size() || known->dynamo[index].empty()) continue;
    known->by_name.try_emplace(std::move(name), known->dynamo[index]);
  }
}

void InputPaths::Apply(std::string_view compile, Module& module) const {
  const auto known = std::ranges::find(compilations_, compile, &Compilation::id);
  if (known == compilations_.end() || known->by_name.empty()) return;
  Graph& graph = module.graph(GraphId{0});
  std::vector<std::pair<NodeId, const std::string*>> found;
  for (NodeId id : InputsOf(graph)) {
    const auto path = known->by_name.find(std::string(graph.name(id)));
    if (path == known->by_name.end() || !StatedPath(graph, id).empty()) continue;
    found.emplace_back(id, &path->second);
  }
  if (found.empty()) return;
  Rewriter rewriter(graph);
  for (const auto& [id, path] : found)
    rewriter.SetAttribute(id, kPathKey, *path);
}

}  // namespace strata
