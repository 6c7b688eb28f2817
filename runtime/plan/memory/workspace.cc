#include "runtime/plan/memory/workspace.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "ir/ops.h"
#include "ir/type.h"
#include "passes/compile/pointwise.h"

namespace strata {
namespace {

const PlanLayout* LayoutOfArg(const Plan& plan, const PlanStep& step, size_t arg) {
  if (arg >= step.args.size() || step.args[arg].kind != ArgKind::kValue) return nullptr;
  const std::optional<PlanLayout>& layout = plan.slots[step.args[arg].slot].layout;
  return layout ? &*layout : nullptr;
}

/// Whether `[batch, heads, seq, dim]` lies as a contiguous `[batch, seq, heads, dim]`.
bool HasSequenceFirst(const PlanLayout& layout) {
  int64_t stride = 1;
  for (const size_t dim : {3, 1, 2, 0}) {
    if (layout.sizes[dim] > 1 && layout.strides[dim] != stride) return false;
    stride *= layout.sizes[dim];
  }
  return true;
}

int64_t AttentionBytes(const Plan& plan, const PlanStep& step, int threads, bool is_backward) {
  const size_t first = is_backward ? 1 : 0;
  const PlanLayout *q = LayoutOfArg(plan, step, first), *v = LayoutOfArg(plan, step, first + 2);
  if (q == nullptr || v == nullptr || q->sizes.size() != 4 || v->sizes.size() != 4) return 0;
  const int64_t queries = q->sizes[2], keys = v->sizes[2], width = q->sizes[3];
  const int64_t rows = std::min<int64_t>(queries, queries >= 768 ? 256 : queries >= 192 ? 64 : 32);
  const int64_t columns = std::min<int64_t>(keys, 512);
  const int64_t item = ByteSize(q->dtype);
  if (!is_backward) return threads * rows * (columns + 2 + width) * item;
  int64_t bytes = threads * 2 * rows * columns * item;
  const PlanLayout* const grad_out = LayoutOfArg(plan, step, 0);
  if (grad_out != nullptr && grad_out->sizes.size() == 4 && !HasSequenceFirst(*grad_out))
    bytes += grad_out->num_elements() * item;
  return bytes;
}

/// Of two types, operators compute in that of the higher rank.
int Rank(DType type) {
  switch (type) {
    case DType::kC32:
    case DType::kC64:
    case DType::kC128:
      return 200 + static_cast<int>(ByteSize(type));
    case DType::kF16:
    case DType::kBF16:
    case DType::kF32:
    case DType::kF64:
      return 100 + static_cast<int>(ByteSize(type));
    case DType::kBool:
      return 0;
    default:
      return static_cast<int>(ByteSize(type));
  }
}

/// Operands that are cast before the loop: those of another type than the widest of the operands,
/// but for numbers, which are read once.
int64_t CastBytes(const Plan& plan, const PlanStep& step) {
  DType computed = DType::kUnknown;
  step.ForEachOperand([&](SlotId slot) {
    const std::optional<PlanLayout>& layout = plan.slots[slot].layout;
    if (!layout || layout->sizes.empty()) return;
    if (computed == DType::kUnknown || Rank(layout->dtype) > Rank(computed))
      computed = layout->dtype;
  });
  int64_t bytes = 0;
  step.ForEachOperand([&](SlotId slot) {
    const std::optional<PlanLayout>& layout = plan.slots[slot].layout;
    if (layout && !layout->sizes.empty() && layout->dtype != computed)
      bytes += layout->num_elements() * ByteSize(computed);
  });
  return bytes;
}

/// Sums have no loop that adds what it casts: operands of another type than the sum are cast first.
int64_t SumBytes(const Plan& plan, const PlanStep& step) {
  const PlanLayout* const operand = LayoutOfArg(plan, step, 0);
  if (operand == nullptr || step.results.empty() || !step.results[0].valid()) return 0;
  const std::optional<PlanLayout>& sum = plan.slots[step.results[0]].layout;
  if (!sum || sum->dtype == operand->dtype) return 0;
  return operand->num_elements() * ByteSize(sum->dtype);
}

}  // namespace

int64_t WorkspaceBytes(const Plan& plan, const PlanStep& step, int threads) {
  constexpr std::string_view kAttention =
      "aten._scaled_dot_product_flash_attention_for_cpu.default";
  constexpr std::string_view kAttentionBackward =
      "aten._scaled_dot_product_flash_attention_for_cpu_backward.default";
  if (step.kernel.valid() || step.flex_kernel.valid()) return 0;
  if (step.op == kAttention) return AttentionBytes(plan, step, threads, /*is_backward=*/false);
  if (step.op == kAttentionBackward) return AttentionBytes(plan, step, threads, true);
  if (IsOverloadOf(step.op, "aten.sum") || IsOverloadOf(step.op, "aten.mean"))
    return SumBytes(plan, step);
  const FusibleOp* const fusible = FindFusible(step.op);
  return fusible != nullptr && fusible->kind == FusionKind::kPointwise ? CastBytes(plan, step) : 0;
}

}  // namespace strata
