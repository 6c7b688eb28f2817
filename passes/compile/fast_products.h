#pragma once
#include <string_view>

#include "ir/graph.h"

namespace strata {

/// Attribute of a matrix product or of attention, which may sum in another order than ATen's:
/// `fast`.
inline constexpr std::string_view kNumericsAttribute = "numerics";
inline constexpr std::string_view kFastNumerics = "fast";

/// Marks the products of f32 matrices on a CPU (`aten.mm`, `aten.bmm`, `aten._grouped_mm`) and
/// attention there (`aten._scaled_dot_product_flash_attention_for_cpu`, its backward). Returns
/// whether there was one without the mark.
bool MarkFastProducts(Graph& graph);

/// Whether it is marked.
bool IsFastProduct(const Graph& graph, NodeId node);

}  // namespace strata
