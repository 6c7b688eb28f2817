#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/rewriter.h"
#include "passes/placement/mesh.h"
#include "prove/mutations/mutations.h"

namespace strata::prove {

inline constexpr std::string_view kAxisIndexOp = "strata.axis_index.default";
inline constexpr std::string_view kAxisShardOp = "strata.axis_shard.default";

/// Wrong exchanges between ranks.
std::span<const Mutation> CollectiveMutations();
/// Wrong parts, offsets and orders of what ranks hold.
std::span<const Mutation> PartMutations();
/// Wrong factors, summands, functions, operands and literals.
std::span<const Mutation> ValueMutations();
/// Wrong times: waits, and memory that is overwritten or never written.
std::span<const Mutation> MemoryMutations();
/// Other operators, dimensions, flags and indices; writes that are lost.
std::span<const Mutation> OperatorMutations();
/// Bugs of values and of ranks that other libraries had.
std::span<const Mutation> ReportedValueMutations();
std::span<const Mutation> ReportedRankMutations();
/// Wrong values between the graphs of pipeline stages.
std::span<const Mutation> StageMutations();
/// The same numbers, rounded otherwise.
std::span<const Mutation> PrecisionMutations();

// What edits have in common.

bool SameType(const Graph& graph, ValueId a, ValueId b);
/// Whether it is a tensor of real numbers other than integers.
bool IsRealTensor(const Graph& graph, ValueId value);
/// The operand at a position, if it is one value.
ValueId OperandAt(const Graph& graph, NodeId node, size_t position);
void SetArg(Rewriter& rewriter, NodeId node, size_t position, Arg arg);
/// An all-reduce or reduce-scatter.
bool IsReduction(const Graph& graph, NodeId node);
/// Of the graph; one rank if it has none.
Mesh MeshOf(const Graph& graph);
std::vector<Use> UsesOf(const Graph& graph, ValueId value);
/// A node at the cursor with one result of the type of `like`.
ValueId CreateLike(Rewriter& rewriter, std::string_view op, std::initializer_list<Arg> args,
                   ValueId like, NodeId from);
/// The only result of a call that is a value of its own: no collective, no view, not written in
/// place. None: there is none, or it is unused.
ValueId ComputedValue(const Graph& graph, NodeId node);

}  // namespace strata::prove
