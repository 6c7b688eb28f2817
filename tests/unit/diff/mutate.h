#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "ir/module.h"

namespace strata::testing {

/// What may happen to a graph. Nodes that live on keep their StableId, so that a diff by id is the
/// truth for a diff by structure.
enum class Mutation : uint8_t {
  kDelete,       ///< a node with one operand goes; its users read the operand
  kInsert,       ///< a copy node on all edges of a value
  kEditLiteral,  ///< a number among the arguments
  kReplaceOp,    ///< another operator, in place
  kRetype,       ///< another dtype of a result
  kRewire,       ///< an operand becomes another value of the same type
  kSwap,         ///< the first two operands change places
  kMove,         ///< a node moves as far as its operands and users allow, up to 40 places
  kClone,        ///< a copy for one of the users
  kFuse,         ///< a node and its only user become one new node
  kDecompose,    ///< a node becomes two new nodes
  kAddInput,     ///< a new input, and a new node that joins it to a value
  kRelinearize,  ///< all nodes in another order; `rate` is ignored
};
inline constexpr int kNumMutations = 13;
std::string_view ToString(Mutation mutation);

/// Applies `mutation` to about `rate` of the nodes of graph 0. Deterministic in `seed`.
void Mutate(Module& module, Mutation mutation, double rate, uint32_t seed);

/// Gives all nodes the names that a new trace would: by operator, numbered in program order.
void RenameAll(Module& module);

}  // namespace strata::testing
