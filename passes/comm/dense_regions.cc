#include "passes/comm/dense_regions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ir/ops.h"
#include "passes/comm/bucketing.h"
#include "passes/comm/fsdp_collectives.h"
#include "passes/comm/module_paths.h"
#include "passes/core/collectives.h"
#include "passes/memory/tags.h"
#include "passes/simulate/compute.h"

namespace strata {
namespace {

bool IsTop(std::string_view module) {
  return IsWithin(module, "norm") || IsWithin(module, "lm_head");
}

/// A wait, a view or a copy does not keep a device busy while a collective runs.
bool IsDense(const Graph& graph, NodeId node) {
  if (IsCompute(graph, node)) return true;
  const std::string_view base = BaseName(graph.op(node));
  return graph.node(node).kind == NodeKind::kCall &&
         (base == "_fused_rms_norm" || base == "_fused_rms_norm_backward" || base == "relu");
}

Direction DirectionOf(const Graph& graph, NodeId node) {
  const bool is_recomputed = graph.name(node).find("_recomputed") != std::string_view::npos;
  return IsBackward(graph, node) || is_recomputed ? Direction::kBackward : Direction::kForward;
}

/// `layers.1.attention.wq`, `layers.1.attention_norm`.
bool IsAttention(std::string_view module, int64_t layer) {
  return IsWithin(module, fmt::format("layers.{}.attention", layer)) ||
         IsWithin(module, fmt::format("layers.{}.attention_norm", layer));
}

/// What a collective is for.
struct Purpose {
  std::vector<std::string> modules;
  Direction direction = Direction::kForward;
};

std::vector<std::string> Modules(std::string_view label) {
  std::vector<std::string> modules;
  for (size_t begin = 0; begin <= label.size();) {
    const size_t end = std::min(label.find(',', begin), label.size());
    modules.emplace_back(label.substr(begin, end - begin));
    begin = end + 1;
  }
  return modules;
}

/// The first readers of `wait` that have a module path, level by level, decide.
std::optional<Purpose> PurposeOfReaders(const Graph& graph, NodeId wait) {
  std::set<NodeId> seen = {wait};
  std::vector<NodeId> level = {wait};
  while (!level.empty()) {
    std::vector<NodeId> next;
    std::optional<Purpose> purpose;
    for (const NodeId node : level) {
      for (const NodeId user : UsersOf(graph, node)) {
        if (!seen.insert(user).second) continue;
        next.push_back(user);
        const std::string_view module = ModuleOf(graph, user);
        if (module.empty()) continue;
        if (!purpose) purpose = Purpose{.modules = {std::string(module)}};
        if (DirectionOf(graph, user) == Direction::kBackward)
          purpose->direction = Direction::kBackward;
      }
    }
    if (purpose) return purpose;
    level = std::move(next);
  }
  return std::nullopt;
}

std::optional<Purpose> PurposeOf(const Graph& graph, NodeId launch, NodeId wait,
                                 bool is_after_forward) {
  for (const NodeId node : {launch, wait}) {
    if (const std::string_view label = graph.attribute(node, kBucketAttribute); !label.empty())
      return Purpose{.modules = Modules(label), .direction = DirectionOf(graph, node)};
  }
  std::optional<Purpose> purpose = PurposeOfReaders(graph, wait);
  for (const NodeId node : {wait, launch}) {
    if (purpose || ModuleOf(graph, node).empty()) continue;
    purpose = Purpose{.modules = {std::string(ModuleOf(graph, node))},
                      .direction = DirectionOf(graph, node)};
  }
  if (purpose && is_after_forward) purpose->direction = Direction::kBackward;
  return purpose;
}

Result<int64_t> LayerOf(const std::vector<std::string>& modules, int64_t num_layers) {
  std::set<int64_t> layers;
  for (const std::string& module : modules)
    if (LayerNumber(module) != kNotInLayers) layers.insert(LayerNumber(module));
  if (layers.size() > 1) {
    return Error("a bucket spans layers {}: {}: give each layer buckets of its own",
                 fmt::join(layers, " and "), fmt::join(modules, ","));
  }
  if (!layers.empty()) {
    if (*layers.begin() < num_layers) return *layers.begin();
    return Error("a bucket names layer {}: {}: the model has {} layers", *layers.begin(),
                 fmt::join(modules, ","), num_layers);
  }
  return std::ranges::any_of(modules, IsTop) ? num_layers : BucketComm::kNoLayer;
}

}  // namespace

DenseRegions::DenseRegions(const Graph& graph, const BlockStructure& blocks) {
  for (const NodeId node : graph.nodes()) {
    if (!IsDense(graph, node)) continue;
    const std::string_view module = ModuleOf(graph, node);
    const int64_t layer = LayerNumber(module);
    if (layer == kNotInLayers) {
      if (IsTop(module)) regions_[{blocks.num_layers, DirectionOf(graph, node)}].push_back(node);
      continue;
    }
    const bool has_experts = std::ranges::binary_search(blocks.moe_layers, layer);
    if (has_experts && !IsAttention(module, layer)) continue;
    const Direction direction =
        IsBackward(graph, node) ? Direction::kBackward : Direction::kForward;
    regions_[{layer, direction}].push_back(node);
  }
}

const std::vector<NodeId>& DenseRegions::Of(int64_t layer, Direction direction) const {
  static const std::vector<NodeId> empty;
  const auto found = regions_.find({layer, direction});
  return found == regions_.end() ? empty : found->second;
}

Result<std::vector<BucketComm>> BucketComms(const Graph& graph, int64_t num_layers) {
  const FsdpCollectives collectives(graph);
  std::vector<BucketComm> comms;
  std::set<NodeId> in_backward;  // waits at or after the first backward node
  bool is_after_forward = false;
  for (const NodeId node : graph.nodes()) {
    is_after_forward |= IsBackward(graph, node);
    if (is_after_forward && IsWait(graph, node)) in_backward.insert(node);
  }
  for (const NodeId node : graph.nodes()) {
    const bool is_gather = IsCollective(graph, node, CollectiveKind::kAllGather);
    const bool is_known =
        collectives.Contains(node) || !graph.attribute(node, kBucketAttribute).empty();
    const bool is_candidate =
        is_gather || IsCollective(graph, node, CollectiveKind::kReduceScatter);
    if (!is_candidate || !is_known) continue;
    const NodeId wait = OnlyWaitOf(graph, node);
    if (!wait.valid()) continue;
    const auto purpose = PurposeOf(graph, node, wait, in_backward.contains(wait));
    if (!purpose) continue;
    STRATA_TRY(const int64_t layer, LayerOf(purpose->modules, num_layers));
    comms.push_back({.launch = node,
                     .wait = wait,
                     .is_gather = is_gather,
                     .direction = purpose->direction,
                     .layer = layer});
  }
  return comms;
}

Status CheckBucketCounts(const std::vector<BucketComm>& comms,
                         const std::map<int64_t, int64_t>& counts) {
  struct Found {
    int64_t forward_gathers = 0, backward_gathers = 0, scatters = 0;
  };
  std::map<int64_t, Found> found;
  for (const BucketComm& comm : comms) {
    Found& layer = found[comm.layer];
    int64_t& count = !comm.is_gather                         ? layer.scatters
                     : comm.direction == Direction::kForward ? layer.forward_gathers
                                                             : layer.backward_gathers;
    ++count;
  }
  std::string mismatches;
  for (const auto& [layer, count] : counts) {
    const Found& one = found[layer];
    if (one.forward_gathers == count && one.backward_gathers == count && one.scatters == count)
      continue;
    mismatches += fmt::format(
        "\n  layer {}: {} all-gathers in forward, {} in backward, {} reduce-scatters; expected {} "
        "of each",
        layer, one.forward_gathers, one.backward_gathers, one.scatters, count);
  }
  if (mismatches.empty()) return Ok();
  return Error(
      "layers without one collective for each bucket and direction: run bucket-transformer-blocks "
      "first, with parameters gathered again in backward:{}",
      mismatches);
}

}  // namespace strata
