#pragma once
#include <cstdint>
#include <memory>

#include "ir/module.h"

namespace strata::testing {

struct RandomGraphOptions {
  int num_nodes = 40;
  bool in_place = true;           ///< with writes to aliases
  bool reshapes_in_place = true;  ///< with in_place: and changes of their shapes
  bool states_aliases = false;    ///< as traced graphs do
};

/// A module with one typed graph "g" that `Evaluate` can run: elementwise operators, matrix
/// products, views that are and are not identities, slices, splits, writes in place, dead ends.
/// Same seed, same graph, on every machine.
std::unique_ptr<Module> RandomGraph(uint32_t seed, const RandomGraphOptions& options = {});

}  // namespace strata::testing
