#pragma once
#include <cstdint>
#include <string_view>

#include "ir/graph.h"

namespace strata {

/// What `input` says of a placeholder.
enum class PlacedInput : uint8_t { kOther, kParameter, kGradient, kState, kBatch };

inline PlacedInput KindOf(const Graph& graph, NodeId placeholder) {
  const std::string_view kind = graph.attribute(placeholder, "input");
  if (kind == "parameter") return PlacedInput::kParameter;
  if (kind == "gradient") return PlacedInput::kGradient;
  if (kind == "state") return PlacedInput::kState;
  return kind == "batch" ? PlacedInput::kBatch : PlacedInput::kOther;
}

/// The parameter that a gradient or state belongs to: "wq.weight" of "wq.weight.exp_avg".
inline std::string_view ParameterOf(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(0, dot);
}

/// A change of the element type.
inline bool IsCast(const Graph& graph, NodeId node) {
  return graph.op(node) == "aten._to_copy.default" && graph.args(node).size() == 1;
}

}  // namespace strata
