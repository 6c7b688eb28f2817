#include "passes/comm/bucket_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "passes/comm/module_paths.h"
#include "passes/core/collectives.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

std::vector<std::string_view> Pieces(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const size_t end = text.find(separator);
    pieces.push_back(TrimBlanks(text.substr(0, end)));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

BucketEntry DenseParts(std::string_view layer) {
  BucketEntry entry;
  for (const std::string_view part :
       {"attention_norm", "attention", "ffn_norm", "moe.router", "moe.shared_experts"})
    entry.push_back(fmt::format("{}.{}", layer, part));
  return entry;
}

Status CheckDisjoint(const BucketPlan& plan) {
  std::vector<std::string_view> paths;
  for (const BucketEntry& entry : plan)
    paths.insert(paths.end(), entry.begin(), entry.end());
  for (size_t i = 0; i < paths.size(); ++i) {
    for (size_t j = 0; j < paths.size(); ++j) {
      if (i == j || !IsWithin(paths[j], paths[i])) continue;
      return Error("buckets overlap: '{}' contains '{}': name each module once", paths[i],
                   paths[j]);
    }
  }
  return Ok();
}

}  // namespace

BlockStructure BlockStructure::Of(const Graph& graph) {
  BlockStructure blocks;
  std::set<int64_t> moe_layers;
  std::set<StrId> modules;
  std::set<std::string_view> expert_groups, other_groups;
  for (const NodeId node : graph.nodes()) {
    const std::string_view module = ModuleOf(graph, node);
    const auto kind = CollectiveOf(graph, node);
    if (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter) {
      const bool is_of_experts = module.find(".moe.experts") != std::string_view::npos;
      (is_of_experts ? expert_groups : other_groups).insert(GroupOf(graph, node));
      blocks.has_chunked_loss |= module == "loss";
    }
    if (!modules.insert(graph.node(node).module).second) continue;
    const int64_t layer = LayerNumber(module);
    blocks.num_layers = std::max(blocks.num_layers, layer + 1);
    if (IsWithin(module, fmt::format("layers.{}.moe", layer))) moe_layers.insert(layer);
  }
  blocks.moe_layers.assign(moe_layers.begin(), moe_layers.end());
  blocks.split_experts = !std::ranges::includes(other_groups, expert_groups);
  return blocks;
}

BucketPlan DefaultBuckets(const BlockStructure& blocks) {
  BucketPlan plan = {{"tok_embeddings"}};
  for (int64_t i = 0; i < blocks.num_layers; ++i) {
    const std::string layer = fmt::format("layers.{}", i);
    if (blocks.split_experts && std::ranges::binary_search(blocks.moe_layers, i)) {
      plan.push_back(DenseParts(layer));
      plan.push_back({layer + ".moe.experts"});
    } else {
      plan.push_back({layer});
    }
  }
  plan.push_back({"norm", "lm_head"});
  if (blocks.has_chunked_loss) plan.back().emplace_back("loss");
  return plan;
}

Result<BucketPlan> ParseBucketPlan(std::string_view text, int64_t num_layers) {
  BucketPlan plan;
  for (const std::string_view entry_text : Pieces(text, '|')) {
    BucketEntry entry;
    for (const std::string_view path : Pieces(entry_text, ',')) {
      if (path.empty()) return Error("bucket '{}' has an empty module path", entry_text);
      entry.emplace_back(path);
    }
    const bool is_pattern = std::ranges::any_of(
        entry, [](std::string_view path) { return path.starts_with("layers.*"); });
    if (!is_pattern) {
      plan.push_back(std::move(entry));
      continue;
    }
    for (int64_t layer = 0; layer < num_layers; ++layer) {
      BucketEntry one = entry;
      for (std::string& path : one)
        if (path.starts_with("layers.*")) path.replace(7, 1, std::to_string(layer));
      plan.push_back(std::move(one));
    }
  }
  STRATA_RETURN_IF_ERROR(CheckDisjoint(plan));
  return plan;
}

std::string EntryText(const BucketEntry& entry) {
  return fmt::format("{}", fmt::join(entry, ","));
}

Result<std::map<int64_t, int64_t>> BucketCounts(const BucketPlan& plan, int64_t num_layers) {
  std::map<int64_t, int64_t> counts;
  for (const BucketEntry& entry : plan) {
    std::set<int64_t> layers;
    for (const std::string& path : entry)
      if (LayerNumber(path) != kNotInLayers) layers.insert(LayerNumber(path));
    if (layers.empty()) continue;
    if (layers.size() > 1) {
      return Error("bucket '{}' spans layers {}: give each layer buckets of its own",
                   EntryText(entry), fmt::join(layers, " and "));
    }
    if (*layers.begin() >= num_layers) {
      return Error("bucket '{}' names layer {}: the model has {} layers", EntryText(entry),
                   *layers.begin(), num_layers);
    }
    ++counts[*layers.begin()];
  }
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    if (counts.contains(layer)) continue;
    return Error("no bucket for layer {}: add 'layers.{}' to the plan", layer, layer);
  }
  return counts;
}

std::map<std::string, int64_t, std::less<>> ParameterModules(
    const std::vector<std::string>& names) {
  std::map<std::string, int64_t, std::less<>> modules;
  for (const std::string& name : names) {
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) continue;
    modules.try_emplace(name.substr(0, dot), static_cast<int64_t>(modules.size()));
  }
  return modules;
}

BucketIndex::BucketIndex(const BucketPlan& plan) {
  for (size_t i = 0; i < plan.size(); ++i)
    for (const std::string& path : plan[i])
      entry_of_.emplace(path, static_cast<int32_t>(i));
}

int32_t BucketIndex::EntryOf(std::string_view module) const {
  while (!module.empty()) {
    if (const auto found = entry_of_.find(module); found != entry_of_.end()) return found->second;
    const size_t dot = module.rfind('.');
    module = dot == std::string_view::npos ? std::string_view() : module.substr(0, dot);
  }
  return -1;
}

}  // namespace strata
