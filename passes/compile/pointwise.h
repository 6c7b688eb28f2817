#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "ir/graph.h"
#include "ir/symbol_sizes.h"

namespace strata {

/// Keyword of a fused node whose kernel may differ from its body by rounding.
inline constexpr std::string_view kFastArg = "fast";
/// Keyword of a fused node that is a region (passes/regions): its body runs node by node, kernels
/// among them.
inline constexpr std::string_view kRegionArg = "region";

/// The body of a fused node that is a region; none: the node is something else.
std::optional<GraphId> RegionBodyOf(const Graph& graph, NodeId node);

/// How an operator can be part of a fused kernel.
enum class FusionKind : uint8_t {
  kNone,
  kPointwise,  ///< each element of the result from the elements at its place
  kReshape,    ///< a view of the same elements in the same order, or broadcast
  kReduction,  ///< over trailing dimensions
};

/// What is known of an operator that can be fused.
struct FusibleOp {
  std::string_view op;
  /// Name of the formula in kernels: "mul" of aten.mul.Tensor, aten.mul.Scalar and
  /// aten.mul_.Tensor.
  std::string_view code;
  FusionKind kind = FusionKind::kNone;
  /// The formula is bitwise equal to ATen on every processor: IEEE arithmetic in ATen's order.
  /// Functions of a vector library (exp, sqrt) and sums in another order are within a tolerance
  /// only.
  bool is_exact = false;
};

/// The entry of an operator, or null.
const FusibleOp* FindFusible(std::string_view op);

/// Whether `node` can be part of a kernel, its arguments considered: `pow` has few exponents,
/// `add_` must not change its dtype. With `exact`, only where the bits are ATen's. Dynamic sizes
/// are tried at `samples`, SampleSizes of the module.
FusionKind FusionKindOf(const Graph& graph, NodeId node, bool exact,
                        std::span<const SymbolSizes> samples);

/// The most columns of a row whose sum is bitwise equal to ATen: a kernel keeps the row.
inline constexpr int64_t kMostExactColumns = 8192;

}  // namespace strata
