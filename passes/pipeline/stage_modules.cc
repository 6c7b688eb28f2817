#include "passes/pipeline/stage_modules.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/module.h"

namespace strata {
namespace {

std::vector<std::string_view> SplitAt(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// The loss belongs to what it reads.
constexpr std::string_view kLossModule = "loss";

}  // namespace

Result<StageModules> StageModules::Split(int64_t num_layers, int64_t num_stages, int64_t first_less,
                                         int64_t last_less) {
  if (num_stages < 1) return Error("{} stages: a pipeline has at least 1", num_stages);
  const int64_t units = num_layers + first_less + last_less;
  const int64_t base = units / num_stages, extra = units % num_stages;
  if (base == 0) {
    return Error("{} stages of {} layers: take at most {} stages", num_stages, num_layers, units);
  }
  const auto size_of = [&](int64_t stage) { return base + (stage < extra ? 1 : 0); };
  if (num_stages > 1 && first_less > base) {
    return Error("the first stage has room for {} layers, its other modules count as {}: take {}",
                 base, first_less, "fewer stages or a smaller number");
  }
  if (num_stages > 1 && last_less > base) {
    return Error("the last stage has room for {} layers, its other modules count as {}: take {}",
                 base, last_less, "fewer stages or a smaller number");
  }
  StageModules split;
  int64_t layer = 0;
  for (int64_t stage = 0; stage < num_stages; ++stage) {
    std::vector<std::string> modules;
    int64_t layers = size_of(stage);
    if (stage == 0) {
      modules.emplace_back("tok_embeddings");
      layers -= first_less;
    }
    if (stage == num_stages - 1) layers = num_layers - layer;
    for (int64_t i = 0; i < layers && layer < num_layers; ++i)
      modules.push_back(fmt::format("layers.{}", layer++));
    if (stage == num_stages - 1) {
      modules.emplace_back("norm");
      modules.emplace_back("lm_head");
    }
    split.modules_.push_back(std::move(modules));
  }
  return split;
}

Result<StageModules> StageModules::Of(std::vector<std::vector<std::string>> modules) {
  StageModules made;
  made.modules_ = std::move(modules);
  std::vector<std::string_view> known;
  for (const std::vector<std::string>& stage : made.modules_) {
    const bool is_empty =
        stage.empty() || std::ranges::any_of(stage, [](const auto& name) { return name.empty(); });
    if (is_empty) {
      return Error("a stage without modules: '{}': write {}", made.Text(),
                   "modules with `,` between them, stages with `;`");
    }
    for (const std::string& module : stage) {
      if (std::ranges::find(known, module) != known.end())
        return Error("module '{}' is in two stages: '{}': name it once", module, made.Text());
      known.push_back(module);
    }
  }
  return made;
}

Result<StageModules> StageModules::Parse(std::string_view text) {
  std::vector<std::vector<std::string>> stages;
  for (const std::string_view stage : SplitAt(text, ';')) {
    std::vector<std::string>& modules = stages.emplace_back();
    for (const std::string_view module : SplitAt(stage, ','))
      modules.emplace_back(module);
  }
  return Of(std::move(stages));
}

std::vector<std::string> StageModules::Decoder(int64_t num_layers) {
  std::vector<std::string> modules = {"tok_embeddings"};
  for (int64_t layer = 0; layer < num_layers; ++layer)
    modules.push_back(fmt::format("layers.{}", layer));
  modules.insert(modules.end(), {"norm", "lm_head"});
  return modules;
}

std::string StageModules::Text() const {
  std::vector<std::string> stages;
  for (const std::vector<std::string>& modules : modules_)
    stages.push_back(fmt::format("{}", fmt::join(modules, ",")));
  return fmt::format("{}", fmt::join(stages, ";"));
}

int64_t StageModules::StageOf(std::string_view module) const {
  if (module == kLossModule) return size() - 1;
  int64_t best = -1;
  size_t longest = 0;
  for (size_t stage = 0; stage < modules_.size(); ++stage) {
    for (const std::string& listed : modules_[stage]) {
      const bool is_inside = module.starts_with(listed) &&
                             (module.size() == listed.size() || module[listed.size()] == '.');
      if (!is_inside || listed.size() < longest) continue;
      best = static_cast<int64_t>(stage);
      longest = listed.size();
    }
  }
  return best;
}

int64_t CountLayers(const Graph& graph) {
  constexpr std::string_view kLayers = "layers.";
  int64_t count = 0;
  for (const NodeId node : graph.nodes()) {
    std::string_view module = graph.module().str(graph.node(node).module);
    if (!module.starts_with(kLayers)) continue;
    module.remove_prefix(kLayers.size());
    int64_t number = 0;
    for (const char c : module.substr(0, module.find('.'))) {
      if (c < '0' || c > '9') return count;
      number = number * 10 + (c - '0');
    }
    count = std::max(count, number + 1);
  }
  return count;
}

}  // namespace strata
