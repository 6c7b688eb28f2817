#include "prove/sizes/size_arguments.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "ir/ops.h"

namespace strata::prove {
namespace {

/// Positional arguments of an operator that are sizes or bounds, as bits.
struct SizeArguments {
  std::string_view op;
  uint32_t positions;
};

constexpr std::array<SizeArguments, 33> kSizeArguments = {{
    {"_fused_rms_norm", 1U << 1},
    {"_fused_rms_norm_backward", 1U << 2},
    {"_reshape_alias", 1U << 1},
    {"_unsafe_view", 1U << 1},
    {"all_to_all_single", 1U << 1 | 1U << 2},
    {"constant_pad_nd", 1U << 1},
    {"convolution_backward", 1U << 3},
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
    {"view", 1U << 1},
    {"view_copy", 1U << 1},
    {"zeros", 1U << 0},
    {"arange", 1U << 0 | 1U << 1},
}};

uint32_t SizePositions(std::string_view base) {
  const auto* const found = std::ranges::find(kSizeArguments, base, &SizeArguments::op);
  return found == kSizeArguments.end() ? 0 : found->positions;
}

/// Operators with a literal in the place of a tensor, in any overload.
constexpr std::array<std::string_view, 15> kArithmetic = {
    "add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "fmod",
    "eq",  "ne",  "lt",   "le",  "gt",  "ge",           "pow"};

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
  const uint32_t sizes = n.kind == NodeKind::kCall ? SizePositions(BaseName(op)) : 0;
  const std::string_view base = n.kind == NodeKind::kCall ? BaseName(op) : std::string_view();
  const bool is_arithmetic = op.find("Scalar") != std::string_view::npos ||
                             std::ranges::find(kArithmetic, base) != kArithmetic.end();
  const bool is_clamp = base == "clamp";
  const std::function<void(uint32_t, IntegerUse)> visit = [&](uint32_t slot, IntegerUse use) {
    const Arg& arg = graph.slot(slot);
    if (arg.kind() == ArgKind::kInt) fn(slot, use, arg.as_int());
    if (arg.kind() == ArgKind::kFloat) {
      if (const auto number = WholeOf(arg.as_float())) fn(slot, IntegerUse::kReal, *number);
    }
    if (!arg.is_span()) return;
    for (uint32_t i = 0; i < arg.span_size(); ++i)
      visit(arg.span_begin() + i, use);
  };
  for (uint32_t i = 0; i < n.num_args; ++i) {
    const bool is_size = i < 32 && (sizes >> i & 1U) != 0;
    visit(n.args_begin + i, is_size         ? IntegerUse::kSize
                            : is_arithmetic ? IntegerUse::kNumber
                            : is_clamp      ? IntegerUse::kLast
                                            : IntegerUse::kOther);
  }
  for (uint32_t i = 0; i < n.num_kwargs; ++i)
    visit(n.args_begin + n.num_args + 2 * i + 1, IntegerUse::kOther);
}

}  // namespace strata::prove
