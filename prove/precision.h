#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace strata::prove {

struct Finding;

/// A kind of places at which a pass changed how numbers are rounded.
struct PrecisionChange {
  std::string node;       ///< the first, after the pass
  std::string reference;  ///< the node before the pass
  std::string modules;    ///< "layers.*.attention"; "": none
  std::string what;       ///< "all_reduce(sum) over tp in bf16"
  int64_t places = 1;
};

/// What the values have in common that differ only because of rounding, in program order. `after`
/// computes what `before` does, but for the findings, which are of a proof with rounding.
/// `stable_ids`: as of ProofOptions; without them nothing is known of the reasons.
std::vector<PrecisionChange> PrecisionChanges(const Graph& before, const Graph& after,
                                              std::span<const Finding> findings, bool stable_ids);

}  // namespace strata::prove
