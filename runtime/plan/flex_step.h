#pragma once
#include <functional>
#include <optional>

#include "base/result.h"
#include "ir/graph.h"
#include "runtime/plan/plan.h"

namespace strata {

/// Makes `step` a call of runtime/flex's operator, which takes bodies as text. `lower` gives the
/// plan's form of an argument. REQUIRES: IsFlexOp of the node. Errors: as ReadFlexNode; a result
/// beyond those of the operators that something reads.
Status LowerFlexNode(const Graph& graph, NodeId node,
                     const std::function<Result<PlanArg>(const Arg&)>& lower, PlanStep& step);

/// The kernel of such a step, of one that creates a block mask, or of ATen's causal attention with
/// the mark of MarkFastProducts (passes/compile/fast_products.h), if this processor lacks AVX-512
/// or is not Intel's: it then takes less time than ATen's. None: another step, or one without a
/// kernel, which the operator executes: types other than fp32 and bf16, layouts that are not known
/// or have gaps in rows, blocks that need too much memory. REQUIRES: the step is lowered.
std::optional<FlexKernel> FlexKernelOf(const Graph& graph, NodeId node, const Plan& plan,
                                       const PlanStep& step);

}  // namespace strata
