#pragma once
#include "passes/placement/solver/solver.h"

namespace strata {

/// Solves by a linear program: a column for each choice of a variable, and for each pair of classes
/// of an edge. A fractional solution is closed by branch and bound. REQUIRES: HasClp().
/// Source: the local polytope of pairwise models; the dual simplex of COIN-OR Clp.
SolverResult SolveByLinearProgram(const PairwiseProblem& problem, const SolverOptions& options);

}  // namespace strata
