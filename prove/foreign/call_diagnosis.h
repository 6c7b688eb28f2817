#pragma once
#include <optional>

#include "prove/diagnosis/bug.h"
#include "prove/foreign/causes.h"

namespace strata::prove {

/// Compares the call at which a difference begins with what one device does with the values that
/// the call reads: other numbers, an operand that is another value, an operator that is left out,
/// was not there or is another one. None: the calls do not show it.
///
/// REQUIRES: the programs are those of one device and of the first rank, as those of `finder`.
std::optional<Diagnosis> DiagnoseCall(const CompiledProgram& single, const CompiledProgram& rank,
                                      const CauseFinder& finder, const Lineage& lineage,
                                      const Cause& cause);

/// Every rank adds a whole value to its summand, before the sum over the ranks.
std::optional<Diagnosis> DiagnoseEarlySum(const CompiledProgram& rank, const CauseFinder& finder,
                                          const Lineage& lineage, const Cause& cause);

}  // namespace strata::prove
