#pragma once
#include <optional>

#include "prove/diagnosis/bug.h"
#include "prove/diagnosis/difference.h"

namespace strata::prove {

/// Each rule names one way in which a value goes wrong, or says nothing.

// memory_rules.cc
std::optional<Diagnosis> InFlight(const Difference& d);     ///< read before its collective ends
std::optional<Diagnosis> Overwritten(const Difference& d);  ///< a new node writes to an operand
std::optional<Diagnosis> LostWrite(const Difference& d);    ///< a node that wrote to it is gone

// node_rules.cc: the same node is in both graphs
std::optional<Diagnosis> OwnCollective(const Difference& d);  ///< group, reduction, part of a rank
std::optional<Diagnosis> OwnArguments(const Difference& d);   ///< operator, literals, operands

// exchange_rules.cc
std::optional<Diagnosis> Early(const Difference& d);       ///< computed before the sum over ranks
std::optional<Diagnosis> Exchanges(const Difference& d);   ///< other collectives
std::optional<Diagnosis> Parts(const Difference& d);       ///< other parts of ranks
std::optional<Diagnosis> SameSlice(const Difference& d);   ///< one part for all ranks
std::optional<Diagnosis> OtherOrder(const Difference& d);  ///< the same collectives, exchanged

// operand_rules.cc
std::optional<Diagnosis> LostRoots(const Difference& d);      ///< an operation is left out
std::optional<Diagnosis> NewOperation(const Difference& d);   ///< an operation that was not there
std::optional<Diagnosis> LostOperation(const Difference& d);  ///< nothing else is new
std::optional<Diagnosis> Roots(const Difference& d);          ///< another value is read
std::optional<Diagnosis> OtherResult(const Difference& d);    ///< another result, another operand
std::optional<Diagnosis> OtherPlaces(const Difference& d);    ///< values in each other's places
std::optional<Diagnosis> OtherSequence(const Difference& d);  ///< operators in another order
std::optional<Diagnosis> NewMove(const Difference& d);        ///< elements are left out
std::optional<Diagnosis> Order(const Difference& d);          ///< pieces in another order

// earlier_rules.cc
std::optional<Diagnosis> Earlier(const Difference& d);  ///< a node before it that is not compared
std::optional<Diagnosis> IndexOfRank(const Difference& d);  ///< an offset or mask of a rank

// diagnosis.cc: what the values say alone
std::optional<Diagnosis> FirstParts(const Difference& d);
std::optional<Diagnosis> OfValues(const Difference& d);

/// x·c or x/c with a number c, or with a value that depends on the rank.
bool IsScaling(const Difference& d, NodeId node);

bool IsNumber(const Arg& arg);

}  // namespace strata::prove
