#pragma once
#include <cstdint>
#include <string>
#include <string_view>

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
  kWrongPart,          ///< the part of another rank, another offset
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
  kPrecision,          ///< the same numbers, rounded otherwise
  kCollectiveOrder,    ///< ranks of a group call collectives in another order
  kWrongMask,          ///< another mask, or bounds of it, of the rows of a rank
};
/// "missing-collective"
std::string_view ToString(BugKind kind);

struct Diagnosis {
  BugKind kind = BugKind::kOther;
  std::string reason;  ///< "reads mul_3 where silu was read"; "": none is known
};

}  // namespace strata::prove
