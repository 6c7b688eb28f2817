#pragma once
#include "passes/placement/solver/solver.h"

namespace strata {

/// Solves without a library: a multiplier prices each row, elimination solves what is left, and
/// branch and bound closes the gap. Where the tables of elimination would be too large, choices are
/// improved one variable at a time, and messages along edges give the bound.
/// Source: Lagrangian relaxation; MPLP (A. Globerson and T. Jaakkola, 2007).
SolverResult SolveByMultipliers(const PairwiseProblem& problem, const SolverOptions& options);

/// Lowers the cost by changing one variable at a time, as long as all rows hold.
void ImproveChoices(const PairwiseProblem& problem, PairwiseProblem::Choices& choices);

}  // namespace strata
