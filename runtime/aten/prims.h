#pragma once

namespace strata {

/// Registers the operators `prims.*` that Inductor's decompositions leave in graphs. PyTorch
/// defines them in Python, so LibTorch alone has none; these compute what PyTorch's do.
void RegisterPrims();

}  // namespace strata
