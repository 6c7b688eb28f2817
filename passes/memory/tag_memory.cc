#include "passes/memory/tag_memory.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ir/by_node.h"
#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/core/fsdp_patterns.h"
#include "passes/memory/foreign_phases.h"
#include "passes/memory/min_cut.h"
#include "passes/memory/overrides.h"
#include "passes/memory/replay.h"
#include "passes/memory/selectors.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

/// Policies by the names that options and configurations use.
const std::initializer_list<std::pair<std::string_view, TagMemory::Policy>> kPolicyNames = {
    {"default", TagMemory::Policy::kDefault},
    {"eager", TagMemory::Policy::kEager},
    {"full", TagMemory::Policy::kFull},
    {"min_cut", TagMemory::Policy::kMinCut},
    {"none", TagMemory::Policy::kNone}};

// Operators that take long for the memory of their results, or whose results may differ when they
// are computed twice. Source: torchtitan's default save list; CPU attention beside its siblings.
constexpr std::array<std::string_view, 28> kSaveOps = {
    "aten.mm",
    "aten.bmm",
    "aten.addmm",
    "aten.linear",
    "aten.convolution",
    "aten.convolution_backward",
    "aten._scaled_mm",
    "aten._flash_attention_forward",
    "aten._efficient_attention_forward",
    "aten._cudnn_attention_forward",
    "aten._scaled_dot_product_flash_attention",
    "aten._scaled_dot_product_flash_attention_for_cpu",
    "aten._scaled_dot_product_efficient_attention",
    "aten._scaled_dot_product_cudnn_attention",
    "aten._scaled_dot_product_attention_math",
    "aten._scaled_dot_product_fused_attention_overrideable",
    "aten.upsample_bilinear2d",
    "aten.max",
    "aten.topk",
    "higher_order.flex_attention",
    "higher_order.inductor_compiled_code",
    "torch_attn._varlen_attn",
    "_c10d_functional.reduce_scatter_tensor",
    "_c10d_functional.all_to_all_single",
    "deepep.dispatch",
    "deepep.combine",
    "hybridep.dispatch",
    "hybridep.combine",
};

bool IsSaveOp(std::string_view op) {
  return std::ranges::any_of(
      kSaveOps, [&](std::string_view base) { return op == base || IsOverloadOf(op, base); });
}

bool IsWait(std::string_view op) {
  return IsOverloadOf(op, "_c10d_functional.wait_tensor");
}

bool HasProgramInteger(const Graph& graph, NodeId node) {
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    const TypeId type = graph.value(graph.result(node, i)).type;
    if (type.valid() && graph.module().types()[type].kind == TypeKind::kSymInt) return true;
  }
  return false;
}

MemoryTag DefaultTag(const Graph& graph, NodeId node) {
  return IsSaveOp(graph.op(node)) ? MemoryTag::kMustSave : MemoryTag::kPreferRecompute;
}

/// Of the matrix products of a layer, every second one is recomputed. One per graph: it counts.
class EagerPolicy {
 public:
  MemoryTag operator()(const Graph& graph, NodeId node) {
    const int64_t layer = LayerNumber(ModuleOf(graph, node));
    if (layer != kNotInLayers && std::exchange(layer_, layer) != layer) num_products_ = 0;
    const std::string_view op = graph.op(node);
    const bool is_product = IsOverloadOf(op, "aten.mm") || IsOverloadOf(op, "aten.linear");
    if (is_product && ++num_products_ % 2 == 0) return MemoryTag::kPreferRecompute;
    return DefaultTag(graph, node);
  }

 private:
  int64_t layer_ = kNotInLayers;
  int64_t num_products_ = 0;
};

MemoryPolicy MakePolicy(TagMemory::Policy policy, const std::vector<NodeSelector>& save) {
  switch (policy) {
    case TagMemory::Policy::kDefault:
      return DefaultTag;
    case TagMemory::Policy::kEager:
      return EagerPolicy();
    case TagMemory::Policy::kFull:
      return [&save, counter = OccurrenceCounter()](const Graph& graph, NodeId node) mutable {
        const int64_t occurrence = counter.Count(ModuleOf(graph, node), graph.op(node));
        const bool is_saved = std::ranges::any_of(save, [&](const NodeSelector& selector) {
          return selector.Matches(ModuleOf(graph, node), graph.op(node), occurrence);
        });
        return is_saved ? MemoryTag::kMustSave : MemoryTag::kMustRecompute;
      };
    case TagMemory::Policy::kMinCut:
    case TagMemory::Policy::kNone:
      break;
  }
  return [](const Graph&, NodeId) { return MemoryTag::kMustSave; };
}

bool IsInLoss(const Graph& graph, NodeId node) {
  const std::string_view module = ModuleOf(graph, node);
  return module.starts_with("lm_head") || module.starts_with("loss");
}

bool MustSave(const Graph& graph, NodeId node) {
  return HasProgramInteger(graph, node) || TraitsOf(graph.op(node)).random;
}

int64_t BytesOf(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  return type.valid() ? graph.module().types().Bytes(type).value_or(0) : 0;
}

/// A reduction: reading its operands again takes longer than its results are worth.
bool IsReduction(const Graph& graph, NodeId node) {
  int64_t in = 0, out = 0;
  graph.ForEachOperand(node, [&](ValueId operand) { in += BytesOf(graph, operand); });
  for (size_t i = 0; i < graph.node(node).num_results; ++i)
    out += BytesOf(graph, graph.result(node, i));
  return 4 * out < in;
}

Result<MemoryPolicy> MinCutPolicy(const Graph& graph) {
  STRATA_TRY(auto saved, NodesToSave(graph, [&](NodeId node) {
               return IsSaveOp(graph.op(node)) || MustSave(graph, node) || IsInLoss(graph, node) ||
                      IsReduction(graph, node);
             }));
  return MemoryPolicy([saved = std::move(saved)](const Graph&, NodeId node) {
    return saved[node] ? MemoryTag::kMustSave : MemoryTag::kPreferRecompute;
  });
}

class Tagger {
 public:
  Tagger(Graph& graph, MemoryPolicy policy, std::span<const NodeId> kept)
      : graph_(graph),
        policy_(std::move(policy)),
        is_kept_(ByNode<bool>(graph)),
        tags_(ByNode<std::optional<MemoryTag>>(graph)) {
    for (const NodeId node : kept)
      is_kept_[node] = true;
  }

  void Run() {
    for (const NodeId node : graph_.nodes())
      tags_[node] = TagOf(node);
    SaveBoundaries();
    SaveWhatCannotBeReplayed();
    Rewriter rewriter(graph_);
    for (const NodeId node : graph_.nodes())
      if (const std::optional<MemoryTag> tag = tags_[node]) SetMemoryTag(rewriter, node, *tag);
  }

 private:
  bool IsGivenUp(NodeId node) const {
    const std::optional<MemoryTag> tag = tags_[node];
    return tag && strata::IsGivenUp(*tag);
  }

  std::optional<MemoryTag> TagOf(NodeId node) {
    if (graph_.node(node).kind != NodeKind::kCall || IsBackward(graph_, node)) return {};
    // Loss and output layer may have backward regions of their own (chunks of the loss).
    if (IsInLoss(graph_, node)) return {};
    const bool is_wait =
        IsWait(graph_.op(node)) && !graph_.args(node).empty() && graph_.args(node)[0].is_value();
    if (is_wait) {
      return is_kept_[node] ? MemoryTag::kMustSave
                            : tags_[graph_.value(graph_.args(node)[0].value()).def];
    }
    const MemoryTag tag = policy_(graph_, node);  // it may count nodes
    return is_kept_[node] || MustSave(graph_, node) ? MemoryTag::kMustSave : tag;
  }

  /// What a recomputed node of a later layer reads: layers are recomputed one by one.
  void SaveBoundaries() {
    for (const NodeId node : graph_.nodes()) {
      if (!IsGivenUp(node)) continue;
      const int64_t layer = LayerNumber(ModuleOf(graph_, node));
      bool is_boundary = false;
      for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
        for (const Use use : graph_.uses(graph_.result(node, i)))
          is_boundary |= IsGivenUp(use.user) && LayerNumber(ModuleOf(graph_, use.user)) > layer;
      }
      if (is_boundary) tags_[node] = MemoryTag::kMustSave;
    }
  }

  void SaveWhatCannotBeReplayed() {
    IdVector<NodeId, bool> given_up = ByNode<bool>(graph_);
    for (const NodeId node : graph_.nodes())
      given_up[node] = IsGivenUp(node);
    const Replay replay(graph_, given_up);
    for (const NodeId node : graph_.nodes()) {
      if (given_up[node] && !replay.CanCopy(node)) tags_[node] = MemoryTag::kMustSave;
    }
  }

  Graph& graph_;
  MemoryPolicy policy_;
  IdVector<NodeId, bool> is_kept_;
  IdVector<NodeId, std::optional<MemoryTag>> tags_;
};

}  // namespace

bool HasBackward(const Graph& graph) {
  return std::ranges::any_of(graph.nodes().Snapshot(),
                             [&](NodeId node) { return IsBackward(graph, node); });
}

bool IsNeverRecomputed(const Graph& graph, NodeId node) {
  return MustSave(graph, node) || IsInLoss(graph, node);
}

void ApplyMemoryPolicy(Graph& graph, MemoryPolicy policy, std::span<const NodeId> kept) {
  Tagger(graph, std::move(policy), kept).Run();
}

Result<std::vector<NodeId>> UnshardedParameters(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (const NodeId placeholder : graph.placeholders()) {
    STRATA_TRY(const std::vector<ValueId> outputs, UnshardOutputs(graph, placeholder));
    for (const ValueId output : outputs)
      nodes.push_back(graph.value(output).def);
  }
  return nodes;
}

Result<Changed> TagMemory::Run(Module& module) {
  STRATA_TRY(const std::vector<NodeSelector> save, ParseSelectors(options_.save));
  if (!save.empty() && options_.policy != Policy::kFull)
    return Error("option 'save' requires policy=full, take one of them out");
  STRATA_TRY(const std::vector<TagOverride> overrides, ParseOverrides(options_.override_tags));
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    if (!HasBackward(graph)) continue;
    CompleteBackward(graph);
    MemoryPolicy policy = MakePolicy(options_.policy, save);
    if (options_.policy == Policy::kMinCut) {
      STRATA_TRY(policy, MinCutPolicy(graph));
    }
    std::vector<NodeId> kept;
    if (options_.keep_unsharded) {
      STRATA_TRY(kept, UnshardedParameters(graph));
    }
    ApplyMemoryPolicy(graph, WithOverrides(std::move(policy), overrides), kept);
    changed = true;
  }
  return Changed(changed);
}

void TagMemory::Options::Bind(OptionList& list) {
  list.Add("policy", policy, kPolicyNames, "which results of forward nodes are saved for backward");
  list.Add("save", save, "with full: nodes that are saved, MODULE_PATTERN::OP separated by |");
  list.Add("override", override_tags,
           "tags of single nodes instead of the policy's, MODULE_PATTERN::OP#2=TAG separated "
           "by |");
  list.Add("keep_unsharded", keep_unsharded,
           "save gathered parameters: backward does not gather them again");
}

std::string_view ToString(TagMemory::Policy policy) {
  const auto* found =
      std::ranges::find(kPolicyNames, policy, [](const auto& entry) { return entry.second; });
  return found->first;
}

std::optional<TagMemory::Policy> MemoryPolicyNamed(std::string_view name) {
  const auto* found =
      std::ranges::find(kPolicyNames, name, [](const auto& entry) { return entry.first; });
  if (found == kPolicyNames.end()) return std::nullopt;
  return found->second;
}

std::string MemoryPolicyNames() {
  std::string names;
  for (const auto& entry : kPolicyNames) {
    const bool is_first = &entry == kPolicyNames.begin();
    const bool is_last = &entry + 1 == kPolicyNames.end();
    names += is_first ? "" : is_last ? " or " : ", ";
    names += entry.first;
  }
  return names;
}

}  // namespace strata
