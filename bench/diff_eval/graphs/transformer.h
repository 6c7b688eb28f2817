#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "ir/module.h"

namespace strata::bench {

/// A line of a layer: `%` is its number, `@` the layer before it (forward) or behind it (backward).
struct LayerLine {
  std::string_view role, call, type, module;
};
std::span<const LayerLine> ForwardLines();
std::span<const LayerLine> BackwardLines();

/// Forward and backward pass of a transformer. The nodes of layer 3 are called `role_3` and, with
/// `paths`, have the module paths `layers.3.…`.
Result<std::unique_ptr<Module>> MakeTransformer(int layers, bool paths);

}  // namespace strata::bench
