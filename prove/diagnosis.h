#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "passes/placement/mesh.h"
#include "prove/tensor.h"

namespace strata::prove {

/// Kinds of bugs, as far as a difference shows them.
enum class BugKind : uint8_t {
  kOther,
  kMissingCollective,  ///< each rank keeps a summand, or a shard
  kExtraCollective,    ///< ranks sum what is a sum already
  kWrongGroup,         ///< a collective of other ranks
  kWrongReduction,     ///< a mean instead of a sum, a maximum instead of a sum
  kPartialOperand,     ///< each rank adds, or applies a function, before the sum over the ranks
  kWrongDim,           ///< another dimension
  kWrongPart,          ///< the part of another rank, another offset or mask
  kExchanged,          ///< another value is read, or values in another order
  kMissingOperation,   ///< a summand, factor or function is left out
  kWrongOperation,     ///< another operator
  kLiteral,            ///< another number in the graph
  kFactor,             ///< a multiple of the expected value, of no known origin
  kInFlight,           ///< read before the end of the collective that writes it
  kUnwritten,          ///< read before anything was written to it
  kInvalid,            ///< an operator that fails: sizes that do not fit
  kContract,           ///< other outputs than were there
  kPermuted,           ///< the same elements in another order
  kSomeRanks,          ///< a value that depends on the rank, where it should not
  kExtraOperation,     ///< an operator that was not there
  kOverwritten,        ///< something was written to memory that is read again
};
/// "missing-collective"
std::string_view ToString(BugKind kind);

struct Diagnosis {
  BugKind kind = BugKind::kOther;
  std::string reason;  ///< "reads mul_3 where silu was read"; "": none is known
};

/// What a value and the expected one say of each other, on each rank. Without a mesh there is one.
struct ValueFacts {
  bool is_undefined = false;   ///< elements that were never written, or are in flight
  std::string factor;          ///< "1/2": the value is that part of the expected one, everywhere
  std::string summand_of;      ///< the axis over which ranks' values sum up to the expected ones
  std::string factor_of;       ///< the axis whose size the factor, or its inverse, is
  bool is_first_part = false;  ///< each rank has what the first one should have
  bool is_other_rank = false;  ///< each rank has what another one should have
  bool is_permuted = false;    ///< ranks have the expected elements in another order
  bool has_other_sizes = false;
};
ValueFacts FactsOf(std::span<const Tensor> expected, std::span<const Tensor> actual,
                   const Mesh& mesh);

/// Compares how the graph before a pass and the one after it make a value, back to nodes that both
/// have. `node`: of `after`, the first whose value differs. `expected`: of `before`, what should
/// have made it. Errors in both are consequences: the first finding is the one that is explained.
Diagnosis Diagnose(const Graph& before, NodeId expected, const Graph& after, NodeId node,
                   const ValueFacts& facts);

}  // namespace strata::prove
