#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "ir/module.h"

namespace strata::prove {

/// Two graphs with one layer of each kind in the place of all.
struct FewerLayers {
  std::unique_ptr<Module> before_module, after_module;
  const Graph* before = nullptr;
  const Graph* after = nullptr;
  int64_t layers = 0, left_out = 0;
};

/// Leaves out layers that are the same as another one (IsSameLayer) in both graphs. What stays
/// reads new inputs, equal ones in both graphs, in the place of values of layers that are left out.
/// A proof that the smaller graphs are equal, and compares each value that both have, is one of the
/// graphs: in program order, the first value that differs would be one of a layer that stays, or,
/// in a layer that was left out, one whose twin differs in the layer that stayed. None: all layers
/// are different.
std::optional<FewerLayers> WithoutEqualLayers(const Graph& before, const Graph& after);

}  // namespace strata::prove
