#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/rewriter.h"

namespace strata {

enum class CollectiveKind : uint8_t {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kBroadcast
};

inline constexpr std::string_view kAllGatherOp = "_c10d_functional.all_gather_into_tensor.default";
inline constexpr std::string_view kReduceScatterOp =
    "_c10d_functional.reduce_scatter_tensor.default";
inline constexpr std::string_view kAllReduceOp = "_c10d_functional.all_reduce.default";
inline constexpr std::string_view kWaitOp = "_c10d_functional.wait_tensor.default";

/// What `node` launches; none: it is not a functional collective.
std::optional<CollectiveKind> CollectiveOf(const Graph& graph, NodeId node);
bool IsCollective(const Graph& graph, NodeId node, CollectiveKind kind);
bool IsWait(const Graph& graph, NodeId node);

/// The process group of a launch: "fsdp". Empty when it is not a literal.
std::string_view GroupOf(const Graph& graph, NodeId launch);
void SetGroup(Rewriter& rewriter, NodeId launch, std::string_view group);
/// The number of ranks that an all-gather or reduce-scatter states.
int64_t GroupSizeOf(const Graph& graph, NodeId launch);
/// "sum" of a reduction; empty for others.
std::string_view ReduceOpOf(const Graph& graph, NodeId launch);

/// The wait that is the only user of `launch`; none: there is no such node.
NodeId OnlyWaitOf(const Graph& graph, NodeId launch);

/// The nodes that read results of `node`, without repetition, in order of their first use.
std::vector<NodeId> UsersOf(const Graph& graph, NodeId node);
/// The only node that reads results of `node`; none when there is none or more than one.
NodeId OnlyUserOf(const Graph& graph, NodeId node);
/// The nodes that `node` reads, without repetition, in order of the operands.
std::vector<NodeId> InputsOf(const Graph& graph, NodeId node);
/// The only node that `node` reads; none when there is none or more than one.
NodeId OnlyInputOf(const Graph& graph, NodeId node);

}  // namespace strata
