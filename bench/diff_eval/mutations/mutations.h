#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diff/model/graph_diff.h"
#include "ir/module.h"

namespace strata::bench {

/// A kind of change. The accuracy gates use the first 13.
enum class Mutation : uint8_t {
  kDelete,       ///< a node goes; its users read its operand
  kInsert,       ///< a cast, copy or alias on the edges of a value
  kAttribute,    ///< a literal
  kTarget,       ///< another operator in place
  kType,         ///< another dtype or size of a result, with and without those below
  kRewire,       ///< an operand becomes an earlier value of the same type
  kReorder,      ///< legal local moves
  kRelinearize,  ///< a random legal order
  kRecompute,    ///< copies of a chain for one user; the original lives
  kChunk,        ///< a body is cut into parts: one in place, the others as copies
  kFuse,         ///< a chain becomes one node
  kCast,         ///< casts around one operator, everywhere
  kMixed,        ///< some of all
  kSwap,         ///< two operands change places
  kDecompose,    ///< a node becomes several
  kMerge,        ///< common subexpression elimination
  kDeadCode,     ///< nodes without users
  kInputs,       ///< inputs added, dropped, exchanged
  kOutputs,      ///< results added, dropped, exchanged
  kOffload,      ///< a computation becomes an input
  kReplaceAll,   ///< one operator becomes another everywhere
  kOptional,     ///< an operand at the end comes or goes
  kSwapEquals,   ///< two nodes of one label exchange their users
  kFuseRegion,   ///< a tree of nodes becomes one node
  kParts,        ///< a short body is computed in parts that are joined or added
  kBucket,       ///< collectives are joined to one on concatenated buffers, and split again
  kDropLayer,    ///< a whole layer goes, with its inputs and results
  kAddLayer,     ///< a copy of a layer behind it: own inputs, the same, or wider ones
  kMoveLayer,    ///< a layer changes its place with the next ones
  kCrossRank,    ///< the same program as another rank has it
};
inline constexpr int kNumGateMutations = 13, kNumMutations = 30;
std::string_view ToString(Mutation mutation);
/// Whether the mutation is one of the graph, whatever the rate.
bool IsOfGraph(Mutation mutation);
/// Whether the graph must repeat layers, as the module paths of its nodes show.
bool NeedsLayers(Mutation mutation);

/// The truth beyond the identity that StableIds give: relations and rewrites between nodes by
/// StableId.
struct Lineage {
  struct Relation {
    RelationKind kind;
    std::vector<StableId> before, after;
  };
  std::vector<Relation> relations;
  /// Per rewrite the nodes that it made, edited or removed.
  std::vector<std::vector<StableId>> rewrites;
  /// Per layer, where one was added or removed, its nodes in the order of their roles. Which of
  /// several equal layers it was is undecidable.
  std::vector<std::vector<StableId>> layers_before, layers_after;
};

/// Applies `mutation` to about `rate` of the nodes of graph 0. Deterministic in `seed`. Nodes that
/// live on keep their StableId.
Lineage Mutate(Module& module, Mutation mutation, double rate, uint32_t seed);

struct MutatedPair {
  std::unique_ptr<Module> before, after;
  Lineage lineage;
};

/// A program made of `base`, and what a mutation makes of it; both with the names of a new trace.
/// Mutations of collectives first make the program that of one of several ranks. None: there is
/// nothing in `base` to apply it to. Errors: the mutation broke the graph.
Result<std::optional<MutatedPair>> MakePair(const Module& base, Mutation mutation, double rate,
                                            uint32_t seed);

/// Applies `mutation` to one node of graph 0, with the choices that `seed` makes. False: it cannot
/// be.
bool MutateNode(Module& module, Mutation mutation, NodeId node, uint32_t seed, Lineage& lineage);

}  // namespace strata::bench
