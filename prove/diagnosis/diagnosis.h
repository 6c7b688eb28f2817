#pragma once
#include "ir/graph.h"
#include "prove/diagnosis/bug.h"
#include "prove/diagnosis/value_facts.h"

namespace strata::prove {

/// Compares how the graph before a pass and the one after it make a value, back to nodes that both
/// have. `node`: of `after`, the first whose value differs. `expected`: of `before`, what should
/// have made it. Errors in both are consequences: the first finding is the one that is explained.
Diagnosis Diagnose(const Graph& before, NodeId expected, const Graph& after, NodeId node,
                   const ValueFacts& facts);

/// Why an operator fails that did not before: what of its call changed, else that its sizes do not
/// fit.
Diagnosis DiagnoseFailure(const Graph& before, const Graph& after, NodeId node);

}  // namespace strata::prove
