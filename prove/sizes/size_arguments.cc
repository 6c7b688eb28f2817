#include "prove/sizes/size_arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>

#include "ir/module.h"
#include "ir/ops.h"

namespace strata::prove {
namespace {

/// Positional arguments of an operator that mean the same, as bits.
struct Positions {
  std::string_view op;
  uint32_t positions;
};

/// Sizes, and bounds within them.
constexpr std::array<Positions, 37> kSizeArguments = {{
    {"_fused_rms_norm", 1U << 1},
    {"_fused_rms_norm_backward", 1U << 2},
    {"_reshape_alias", 1U << 1},
    {"_unsafe_view", 1U << 1},
    {"all_to_all_single", 1U << 1 | 1U << 2},
    {"constant_pad_nd", 1U << 1},
    {"convolution_backward", 1U << 3},
    {"diagonal_backward", 1U << 1},
    {"embedding_dense_backward", 1U << 2},
    {"empty", 1U << 0},
    {"expand", 1U << 1},
    {"expand_copy", 1U << 1},
    {"full", 1U << 0},
    {"native_layer_norm", 1U << 1},
    {"native_layer_norm_backward", 1U << 2},
    {"new_empty", 1U << 1},
    {"new_full", 1U << 1},
    {"new_ones", 1U << 1},
    {"new_zeros", 1U << 1},
    {"ones", 1U << 0},
    {"rand", 1U << 0},
    {"reshape", 1U << 1},
    {"select_backward", 1U << 1},
    {"slice", 1U << 2 | 1U << 3},
    {"slice_backward", 1U << 1 | 1U << 3 | 1U << 4},
    {"slice_scatter", 1U << 3 | 1U << 4},
    {"split", 1U << 1},
    {"split_with_sizes", 1U << 1},
    {"split_with_sizes_copy", 1U << 1},
    {"sum_to_size", 1U << 1},
    {"topk", 1U << 1},
    {"unsafe_split", 1U << 1},
    {"view", 1U << 1},
    {"view_copy", 1U << 1},
    {"zeros", 1U << 0},
    {"eye", 1U << 0 | 1U << 1},
    {"arange", 1U << 0 | 1U << 1},
}};

/// One dimension, or a list of them.
constexpr std::array<Positions, 46> kDimensionArguments = {{
    {"_log_softmax", 1U << 1},
    {"_log_softmax_backward_data", 1U << 2},
    {"_safe_softmax", 1U << 1},
    {"_softmax", 1U << 1},
    {"_softmax_backward_data", 1U << 2},
    {"amax", 1U << 1},
    {"amin", 1U << 1},
    {"argmax", 1U << 1},
    {"argmin", 1U << 1},
    {"axis_shard", 1U << 1},
    {"cat", 1U << 1},
    {"chunk", 1U << 2},
    {"cumprod", 1U << 1},
    {"cumsum", 1U << 1},
    {"flip", 1U << 1},
    {"gather", 1U << 1},
    {"index_add", 1U << 1},
    {"index_select", 1U << 1},
    {"linalg_vector_norm", 1U << 2},
    {"logsumexp", 1U << 1},
    {"mean", 1U << 1},
    {"permute", 1U << 1},
    {"prod", 1U << 1},
    {"roll", 1U << 2},
    {"scatter", 1U << 1},
    {"scatter_add", 1U << 1},
    {"scatter_reduce", 1U << 1},
    {"select", 1U << 1},
    {"select_backward", 1U << 2},
    {"select_scatter", 1U << 2},
    {"slice", 1U << 1},
    {"slice_backward", 1U << 2},
    {"slice_scatter", 1U << 2},
    {"sort", 1U << 1},
    {"split", 1U << 2},
    {"split_with_sizes", 1U << 2},
    {"split_with_sizes_copy", 1U << 2},
    {"squeeze", 1U << 1},
    {"stack", 1U << 1},
    {"sum", 1U << 1},
    {"topk", 1U << 2},
    {"transpose", 1U << 1 | 1U << 2},
    {"unbind", 1U << 1},
    {"unsafe_split", 1U << 2},
    {"unsqueeze", 1U << 1},
    {"var_mean", 1U << 1},
}};

uint32_t PositionsOf(std::span<const Positions> table, std::string_view base) {
  const auto found = std::ranges::find(table, base, &Positions::op);
  return found == table.end() ? 0 : found->positions;
}

/// Operators with a literal in the place of a tensor, in any overload.
constexpr std::array<std::string_view, 15> kArithmetic = {
    "add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "fmod",
    "eq",  "ne",  "lt",   "le",  "gt",  "ge",           "pow"};

constexpr std::array<std::string_view, 6> kComparisons = {"eq", "ne", "lt", "le", "gt", "ge"};

/// The number, or what it divides 1 by, if that is whole.
std::optional<int64_t> WholeOf(double number) {
  constexpr double kLargest = 1e15;
  const double divisor = std::round(1 / number);
  if (std::abs(number) < kLargest && number == std::floor(number))
    return static_cast<int64_t>(number);
  if (std::abs(divisor) < kLargest && 1 / divisor == number) return static_cast<int64_t>(divisor);
  return std::nullopt;
}

}  // namespace

void ForEachInteger(const Graph& graph, NodeId node,
                    const std::function<void(uint32_t, IntegerUse, int64_t)>& fn) {
  const Node& n = graph.node(node);
  const std::string_view op = graph.op(node);
  const std::string_view base = n.kind == NodeKind::kCall ? BaseName(op) : std::string_view();
  const uint32_t sizes = PositionsOf(kSizeArguments, base);
  const uint32_t dimensions = PositionsOf(kDimensionArguments, base);
  const bool is_arithmetic = op.find("Scalar") != std::string_view::npos ||
                             std::ranges::find(kArithmetic, base) != kArithmetic.end();
  const bool is_clamp = base == "clamp";
  const bool is_comparison = std::ranges::find(kComparisons, base) != kComparisons.end();
  const std::function<void(uint32_t, IntegerUse)> visit = [&](uint32_t slot, IntegerUse use) {
    const Arg& arg = graph.slot(slot);
    if (arg.kind() == ArgKind::kInt) {
      // Negative labels are ignored, and no index or size is negative.
      const bool is_label = arg.as_int() < 0 && (use == IntegerUse::kOther || is_comparison);
      fn(slot, is_label ? IntegerUse::kName : use, arg.as_int());
    }
    if (arg.kind() == ArgKind::kFloat) {
      if (const auto number = WholeOf(arg.as_float())) fn(slot, IntegerUse::kReal, *number);
    }
    if (!arg.is_span()) return;
    for (uint32_t i = 0; i < arg.span_size(); ++i)
      visit(arg.span_begin() + i, use);
  };
  for (uint32_t i = 0; i < n.num_args; ++i) {
    const auto is_among = [&](uint32_t positions) { return i < 32 && (positions >> i & 1U) != 0; };
    const bool is_exponent = base == "pow" && i == 1;
    visit(n.args_begin + i, is_among(sizes)                       ? IntegerUse::kSize
                            : is_among(dimensions) || is_exponent ? IntegerUse::kName
                            : is_arithmetic                       ? IntegerUse::kNumber
                            : is_clamp                            ? IntegerUse::kLast
                                                                  : IntegerUse::kOther);
  }
  for (uint32_t i = 0; i < n.num_kwargs; ++i) {
    const bool is_dimension = graph.module().str(graph.kwarg(node, i).name) == "dim";
    visit(n.args_begin + n.num_args + 2 * i + 1,
          is_dimension ? IntegerUse::kName : IntegerUse::kOther);
  }
}

}  // namespace strata::prove
