#pragma once
#include <cstddef>

#include "ir/graph.h"
#include "ir/type.h"

namespace strata {

/// The type of result `i` of a call that views its first operand, or writes to it in place, as it
/// follows from how that operand lies in memory now: sizes are those that it has, strides and
/// offset may be others. It has no strides where they are not known: of another call, or where the
/// sizes do not let the result be a view. REQUIRES: both are tensors.
/// Source: aten/src/ATen/native/TensorShape.cpp.
Type TypeOfView(Graph& graph, NodeId call, size_t i);

}  // namespace strata
