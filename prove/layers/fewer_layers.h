#pragma once
#include <cstdint>
#include <optional>

#include "prove/layers/pair_cut.h"

namespace strata::prove {

/// Two graphs with one layer of each kind in the place of all.
struct FewerLayers {
  CutPair pair;
  int64_t layers = 0, left_out = 0;
};

/// Leaves out layers that are the same as another one (IsSameLayer) in both graphs. A proof that
/// the smaller graphs are equal, and compares each value that both have, is one of the graphs: in
/// program order, the first value that differs would be one of a layer that stays, or, in a layer
/// that was left out, one whose twin differs in the layer that stayed. None: all layers are
/// different.
std::optional<FewerLayers> WithoutEqualLayers(const Graph& before, const Graph& after);

}  // namespace strata::prove
