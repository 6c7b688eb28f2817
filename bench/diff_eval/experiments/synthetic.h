#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace strata::bench {

struct SyntheticOptions {
  std::vector<std::string> graphs;  ///< files with FX text
  uint32_t first_seed = 1, num_seeds = 2;
  std::vector<double> rates{0.005, 0.05};  ///< shares of the nodes that are mutated
  bool baselines = false;
  bool all_kinds = false;  ///< also those that no accuracy gate uses
  std::string only;        ///< a kind by name; "": all
  bool verbose = false;
  std::string dump;  ///< a folder for the texts of cases with errors; "": none
};

/// Mutates graphs, matches them without names and prints a table of how much was found: identity,
/// touched nodes, statuses, fields, relations, hunks, calibration, invariants.
Status EvaluateSynthetic(const SyntheticOptions& options);

}  // namespace strata::bench
