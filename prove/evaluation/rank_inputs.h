#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/mesh.h"
#include "prove/values/call.h"

namespace strata::prove {

/// Graphs of more are not evaluated.
inline constexpr int64_t kMaxRanks = 64;

/// The mesh whose ranks run a graph; one rank if it names none. Errors: text of another form, more
/// ranks than a proof evaluates.
Result<Mesh> MeshToEvaluate(const Graph& graph);

/// Random inputs of a graph, other ones on each rank. `has_replicas`: but equal ones on ranks that
/// the placement of an input of a lowered graph calls replicas.
///
/// `makers`: of a graph of a pipeline stage, those of the same stage that compute what it reads, in
/// an order in which they can run. They are evaluated where random inputs would not fit together:
/// where the graph reads integers, or tensors with sizes that depend on data, which a graph before
/// it saves. Then all that they save is what they compute. Errors: those of MakeInputs and of
/// RankEvaluator.
Result<std::vector<Values>> InputsOnRanks(const Graph& graph, const Mesh& mesh, uint64_t seed,
                                          std::span<const Graph* const> makers = {},
                                          bool has_replicas = false);

}  // namespace strata::prove
