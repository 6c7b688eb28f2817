#pragma once
#include <optional>

#include "passes/placement/solver/pairwise.h"

namespace strata {

/// The least-cost choices without the rows of `problem`, by elimination of one variable after the
/// other. None: a table would have more than `max_entries` entries, or no choices are allowed
/// together. Source: bucket elimination (R. Dechter, 1999), fewest entries first.
std::optional<PairwiseProblem::Choices> SolveByElimination(const PairwiseProblem& problem,
                                                           double max_entries);

/// The entries of the largest table that it would need.
double EliminationEntries(const PairwiseProblem& problem);

}  // namespace strata
