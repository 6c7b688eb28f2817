#pragma once
#include <optional>

#include "ir/graph.h"
#include "ir/type.h"

namespace strata {

/// The type of result `i` of a call that views its first operand, or writes to it in place, as it
/// follows from how that operand lies in memory now: sizes are those that it has, strides and
/// offset may be others. None: not such a call, or strides that the sizes do not allow.
/// Source: aten/src/ATen/native/TensorShape.cpp.
std::optional<Type> TypeOfView(Graph& graph, NodeId call, size_t i);

}  // namespace strata
