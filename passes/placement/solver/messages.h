#pragma once
#include "passes/placement/solver/pairwise.h"

namespace strata {

struct MessageResult {
  PairwiseProblem::Choices choices;
  double bound = 0;  ///< no choices cost less
};

/// Passes messages along the edges, at most `rounds` times over all: each raises the bound. The
/// choices are those that the messages favour. Rows are not looked at.
/// Source: MPLP (A. Globerson and T. Jaakkola, 2007).
MessageResult PassMessages(const PairwiseProblem& problem, int rounds);

}  // namespace strata
