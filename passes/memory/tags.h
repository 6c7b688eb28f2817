#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/graph.h"
#include "ir/rewriter.h"

namespace strata {

/// What becomes of a forward result that backward reads: the node attribute `recompute`. The texts
/// are those of torch.utils.checkpoint.CheckpointPolicy, and torchtitan's MUST_CPU_OFFLOAD.
enum class MemoryTag : uint8_t { kMustSave, kPreferRecompute, kMustRecompute, kMustCpuOffload };

inline constexpr std::string_view kMemoryTagAttribute = "recompute";
/// Of a copy: the name of the forward node that it repeats.
inline constexpr std::string_view kRecomputedFromAttribute = "recomputed_from";

/// "MUST_SAVE", "PREFER_RECOMPUTE", "MUST_RECOMPUTE", "MUST_CPU_OFFLOAD".
std::string_view ToString(MemoryTag tag);

/// None for untagged nodes, and for tags of others.
std::optional<MemoryTag> MemoryTagOf(const Graph& graph, NodeId node);
void SetMemoryTag(Rewriter& rewriter, NodeId node, MemoryTag tag);

inline bool IsBackward(const Graph& graph, NodeId node) {
  return graph.node(node).phase == Phase::kBackward;
}

/// Whether backward computes a result with that tag again.
inline bool IsGivenUp(MemoryTag tag) {
  return tag == MemoryTag::kPreferRecompute || tag == MemoryTag::kMustRecompute;
}

/// Whether a node is a forward node that a policy gives up: backward computes it again.
bool IsRecomputable(const Graph& graph, NodeId node);

/// The path of a node's module: "layers.3.attention.wq".
std::string_view ModuleOf(const Graph& graph, NodeId node);

inline constexpr int64_t kNotInLayers = -1;
/// 3 of "layers.3.attention.wq"; kNotInLayers of "norm" and "layers.x".
int64_t LayerNumber(std::string_view module);

}  // namespace strata
