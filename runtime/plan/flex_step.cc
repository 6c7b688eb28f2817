#include "runtime/plan/flex_step.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/attention.h"
#include "ir/module.h"
#include "passes/compile/fast_products.h"
#include "passes/flex/flex_body.h"
#include "passes/flex/flex_mods.h"
#include "passes/flex/flex_node.h"

namespace strata {
namespace {

class FlexLowering {
 public:
  FlexLowering(const Graph& graph, const std::function<Result<PlanArg>(const Arg&)>& lower,
               PlanStep& step)
      : graph_(graph), lower_(lower), step_(step) {}

  Status Run(const FlexNode& flex) {
    step_.op = flex.is_backward ? "strata.flex_attention_backward.default"
                                : "strata.flex_attention.default";
    for (const Arg& tensor : flex.tensors) {
      STRATA_TRY(PlanArg lowered, lower_(tensor));
      step_.args.push_back(std::move(lowered));
    }
    AddBody(flex.score_mod);
    if (flex.is_backward) AddBody(flex.joint_graph);
    STRATA_RETURN_IF_ERROR(AddList(flex.block_mask));
    const Arg sizes[] = {flex.lengths[0], flex.lengths[1], flex.block_sizes[0],
                         flex.block_sizes[1]};
    STRATA_RETURN_IF_ERROR(AddList(sizes));
    AddBody(flex.mask_mod);
    PlanArg scale;
    scale.kind = ArgKind::kFloat;
    scale.real = flex.scale;
    step_.args.push_back(std::move(scale));
    STRATA_RETURN_IF_ERROR(AddList(flex.score_buffers));
    return AddList(flex.mask_buffers);
  }

 private:
  void AddBody(GraphId body) {
    PlanArg text;
    text.kind = ArgKind::kString;
    text.text = FlexBodyText(graph_.module().graph(body));
    step_.args.push_back(std::move(text));
  }

  Status AddList(std::span<const Arg> elements) {
    PlanArg list;
    list.kind = ArgKind::kList;
    for (const Arg& element : elements) {
      if (element.is_none()) continue;
      STRATA_TRY(PlanArg lowered, lower_(element));
      list.elements.push_back(std::move(lowered));
    }
    step_.args.push_back(std::move(list));
    return Ok();
  }

  const Graph& graph_;
  const std::function<Result<PlanArg>(const Arg&)>& lower_;
  PlanStep& step_;
};

/// Scratch memory of a thread of a CPU, in numbers.
constexpr int64_t kMaxScratch = int64_t{1} << 24;
/// Numbers of a key and its value, or of a query and its gradient, in shared memory of a GPU.
constexpr int64_t kMaxShared = 8192;

/// Queries of a row of causal attention for which it is faster than ATen's.
constexpr int64_t kLeastCausal = 128;
/// Queries and keys of its blocks. Of short rows small ones, which waste less on the diagonal.
constexpr int64_t kCausalBlock = 64, kLongCausalBlock = 128, kLongRow = 4096;

/// ATen's kernels are the faster ones where MKL, which they call, has wide registers: it takes them
/// on processors of Intel only.
bool PrefersCausalKernel() {
#if defined(__x86_64__)
  return !__builtin_cpu_is("intel") || !__builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}

std::optional<double> NumberOf(const Arg& arg) {
  if (arg.kind() == ArgKind::kFloat) return arg.as_float();
  return arg.kind() == ArgKind::kInt ? std::optional(static_cast<double>(arg.as_int()))
                                     : std::nullopt;
}

class KernelMaker {
 public:
  KernelMaker(const Graph& graph, const Plan& plan, const PlanStep& step)
      : graph_(graph), plan_(plan), step_(step) {}

  std::optional<FlexKernel> OfAttention(const FlexNode& flex) {
    kernel_.kind = flex.is_backward ? FlexKernel::Kind::kBackward : FlexKernel::Kind::kForward;
    kernel_.scale = flex.scale;
    const size_t num_tensors = flex.tensors.size();
    const bool is_read =
        SetBody(flex.score_mod, FlexRole::kScore, kernel_.score_mod) &&
        SetBody(flex.mask_mod, FlexRole::kMask, kernel_.mask_mod) &&
        (!flex.is_backward || SetBody(flex.joint_graph, FlexRole::kJoint, kernel_.joint_graph));
    const std::vector<PlanArg>& args = step_.args;
    if (!is_read || !SetSizes(args, 0) || !SetStrides(/*query=*/0, /*out=*/3, /*gradient=*/5) ||
        !IsDense(flex.is_backward ? args[4].slot : ResultAt(1), DType::kF32)) {
      return std::nullopt;
    }
    // Bodies follow the tensors; then blocks, sizes, mask_mod, scale, buffers.
    const size_t blocks = num_tensors + (flex.is_backward ? 2 : 1);
    if (!SetBlocks(args[blocks], args[blocks + 1])) return std::nullopt;
    return Finish(args[blocks + 4], args[blocks + 5]);
  }

  /// Of ATen's attention, where it is causal.
  std::optional<FlexKernel> OfCausal(NodeId node, const AttentionOp& op) {
    const std::span<const Arg> args = graph_.args(node);
    kernel_.kind = op.is_backward ? FlexKernel::Kind::kBackward : FlexKernel::Kind::kForward;
    kernel_.is_causal = args[op.causal].kind() == ArgKind::kBool && args[op.causal].as_bool();
    if (!kernel_.is_causal || NumberOf(args[op.dropout]) != 0.0 ||
        FindMask(graph_, node, op) != nullptr || !SetSizes(step_.args, op.query) ||
        kernel_.queries != kernel_.keys || kernel_.queries < kLeastCausal || !SetCausalBodies()) {
      return std::nullopt;
    }
    kernel_.query_block = kernel_.key_block =
        kernel_.queries < kLongRow ? kCausalBlock : kLongCausalBlock;
    const Arg* const scale = graph_.FindKwarg(node, "scale");
    const bool has_scale = scale != nullptr && !scale->is_none();
    const std::optional<double> given =
        has_scale ? NumberOf(*scale) : 1.0 / std::sqrt(static_cast<double>(kernel_.width));
    if (!given || !SetStrides(op.query, op.output, /*gradient=*/0)) return std::nullopt;
    kernel_.scale = *given;
    const PlanLayout* const sums =
        LayoutOf(op.is_backward ? step_.args[op.log_sums].slot : ResultAt(1));
    if (sums == nullptr || sums->dtype != DType::kF32 || sums->strides.size() != 3)
      return std::nullopt;
    std::ranges::copy(sums->strides, kernel_.logsumexp_strides.begin());
    return Finish({}, {});
  }

  std::optional<FlexKernel> OfBlockMask(GraphId mask_mod) {
    kernel_.kind = FlexKernel::Kind::kBlockMask;
    kernel_.dtype = DType::kF32;
    const std::vector<PlanArg>& sizes = step_.args[1].elements;
    if (!SetBody(mask_mod, FlexRole::kMask, kernel_.mask_mod) || sizes.size() != 6)
      return std::nullopt;
    kernel_.mask_batch = sizes[0].integer;
    kernel_.mask_heads = sizes[1].integer;
    kernel_.queries = sizes[2].integer;
    kernel_.keys = sizes[3].integer;
    kernel_.query_block = sizes[4].integer;
    kernel_.key_block = sizes[5].integer;
    return Finish({}, step_.args[2]);
  }

 private:
  bool SetBody(GraphId body, FlexRole role, FlexProgram& program) {
    auto made = MakeFlexProgram(graph_.module().graph(body), role);
    if (made) program = *std::move(made);
    return made.has_value();
  }

  /// Of attention without a change of scores; no graph holds them.
  bool SetCausalBodies() {
    Module scratch;
    const auto set = [&](std::string_view text, FlexRole role, FlexProgram& program) {
      const auto body = AddFlexBody(scratch, text, role, ToString(role), {}, "cpu");
      if (!body) return false;
      auto made = MakeFlexProgram(scratch.graph(*body), role);
      if (made) program = *std::move(made);
      return made.has_value();
    };
    const Result<std::string> joint = JointText(kIdentityScoreMod);
    return set(kIdentityScoreMod, FlexRole::kScore, kernel_.score_mod) &&
           set(MaskModText({}), FlexRole::kMask, kernel_.mask_mod) && joint &&
           set(*joint, FlexRole::kJoint, kernel_.joint_graph);
  }

  /// Invalid: the graph does not take it, as Dynamo's does not take what is not read.
  SlotId ResultAt(size_t i) const { return i < step_.results.size() ? step_.results[i] : SlotId(); }

  const PlanLayout* LayoutOf(SlotId slot) const {
    if (!slot.valid()) return nullptr;
    const std::optional<PlanLayout>& layout = plan_.slots[slot].layout;
    return layout ? &*layout : nullptr;
  }

  /// `first` is the position of the query, which key and value follow.
  bool SetSizes(const std::vector<PlanArg>& args, size_t first) {
    const PlanLayout *const query = LayoutOf(args[first].slot),
                            *const key = LayoutOf(args[first + 1].slot),
                            *const value = LayoutOf(args[first + 2].slot);
    if (query == nullptr || key == nullptr || value == nullptr || query->sizes.size() != 4 ||
        query->dtype != key->dtype || query->dtype != value->dtype ||
        query->sizes[0] != key->sizes[0] ||
        (query->dtype != DType::kF32 && query->dtype != DType::kBF16)) {
      return false;
    }
    kernel_.dtype = query->dtype;
    kernel_.batch = query->sizes[0];
    kernel_.heads = query->sizes[1];
    kernel_.kv_heads = key->sizes[1];
    kernel_.queries = query->sizes[2];
    kernel_.keys = key->sizes[2];
    kernel_.width = query->sizes[3];
    kernel_.value_width = value->sizes[3];
    return kernel_.heads % kernel_.kv_heads == 0;
  }

  /// Query, key, value, out, gradient of out; gradients of query, key, value. Of arguments at these
  /// positions; the last two in backward only.
  bool SetStrides(size_t query, size_t out, size_t gradient) {
    const std::vector<PlanArg>& args = step_.args;
    std::vector<SlotId> slots = {args[query].slot, args[query + 1].slot, args[query + 2].slot};
    if (kernel_.kind == FlexKernel::Kind::kBackward) {
      slots.insert(slots.end(), {args[out].slot, args[gradient].slot});
      slots.insert(slots.end(), {ResultAt(0), ResultAt(1), ResultAt(2)});
    } else {
      slots.push_back(ResultAt(0));
    }
    for (size_t i = 0; i < slots.size(); ++i) {
      const PlanLayout* const layout = LayoutOf(slots[i]);
      if (layout == nullptr || layout->dtype != kernel_.dtype || layout->strides.size() != 4 ||
          layout->strides[3] != 1) {
        return false;
      }
      std::ranges::copy(layout->strides, kernel_.strides[i].begin());
    }
    return true;
  }

  bool IsDense(SlotId slot, DType dtype) const {
    const PlanLayout* const layout = LayoutOf(slot);
    if (layout == nullptr || layout->dtype != dtype) return false;
    int64_t stride = 1;
    for (size_t dim = layout->sizes.size(); dim-- > 0;) {
      if (layout->sizes[dim] != 1 && layout->strides[dim] != stride) return false;
      stride *= layout->sizes[dim];
    }
    return true;
  }

  bool SetBlocks(const PlanArg& blocks, const PlanArg& sizes) {
    if (blocks.elements.size() != kNumBlockTensors || sizes.elements.size() != 4) return false;
    for (const PlanArg& block : blocks.elements)
      if (!IsDense(block.slot, DType::kI32)) return false;
    const std::vector<int64_t>& counts = LayoutOf(blocks.elements[0].slot)->sizes;
    kernel_.mask_batch = counts[0];
    kernel_.mask_heads = counts[1];
    kernel_.query_block = sizes.elements[2].integer;
    kernel_.key_block = sizes.elements[3].integer;
    return counts.size() == 3 && sizes.elements[0].integer == kernel_.queries &&
           sizes.elements[1].integer == kernel_.keys;
  }

  bool AddBuffers(const PlanArg& buffers, std::vector<FlexKernel::Buffer>& added) const {
    for (const PlanArg& buffer : buffers.elements) {
      const PlanLayout* const layout = LayoutOf(buffer.slot);
      if (layout == nullptr) return false;
      added.push_back({.dtype = layout->dtype, .strides = layout->strides});
    }
    return true;
  }

  std::optional<FlexKernel> Finish(const PlanArg& score_buffers, const PlanArg& mask_buffers) {
    if (!AddBuffers(score_buffers, kernel_.score_buffers) ||
        !AddBuffers(mask_buffers, kernel_.mask_buffers)) {
      return std::nullopt;
    }
    const FlexKernel& k = kernel_;
    if (plan_.options.on_gpu)
      return k.width + k.value_width <= kMaxShared ? std::optional(std::move(kernel_))
                                                   : std::nullopt;
    const int64_t widest = std::max({k.width, k.value_width, k.key_block}) + 16;
    const int64_t rows = std::max(
        {k.query_block, k.key_block, k.heads / k.kv_heads * k.queries * (k.width + 16) / widest});
    const bool fits = k.kind == FlexKernel::Kind::kBlockMask || rows * widest <= kMaxScratch;
    return fits ? std::optional(std::move(kernel_)) : std::nullopt;
  }

  const Graph& graph_;
  const Plan& plan_;
  const PlanStep& step_;
  FlexKernel kernel_;
};

}  // namespace

std::optional<FlexKernel> FlexKernelOf(const Graph& graph, NodeId node, const Plan& plan,
                                       const PlanStep& step) {
  if (IsFlexOp(graph.op(node))) {
    const auto flex = ReadFlexNode(graph, node);
    return flex ? KernelMaker(graph, plan, step).OfAttention(*flex) : std::nullopt;
  }
  const AttentionOp* const attention = FindAttentionOp(graph.op(node));
  if (attention != nullptr && !plan.options.on_gpu && IsFastProduct(graph, node) &&
      PrefersCausalKernel())
    return KernelMaker(graph, plan, step).OfCausal(node, *attention);
  if (graph.op(node) != kBlockMaskOp) return std::nullopt;
  const std::optional<GraphId> mask_mod = BodyNamedBy(graph, graph.args(node)[0]);
  return mask_mod ? KernelMaker(graph, plan, step).OfBlockMask(*mask_mod) : std::nullopt;
}

Status LowerFlexNode(const Graph& graph, NodeId node,
                     const std::function<Result<PlanArg>(const Arg&)>& lower, PlanStep& step) {
  STRATA_TRY(const FlexNode flex, ReadFlexNode(graph, node));
  const size_t num_results = flex.is_backward ? 3 : 2;
  for (size_t i = num_results; i < graph.node(node).num_results; ++i) {
    if (graph.value(graph.result(node, i)).num_uses > 0) {
      return Error(ErrorCode::kUnsupported,
                   "flex attention gives {} results here, and result {} is read", num_results, i);
    }
  }
  return FlexLowering(graph, lower, step).Run(flex);
}

}  // namespace strata
