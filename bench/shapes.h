#pragma once
#include <span>
#include <string_view>

#include "base/result.h"
#include "runtime/config/config.h"

namespace strata::cli {

/// A model with a batch that `strata bench train` measures.
struct BenchShape {
  std::string_view name;
  std::string_view config;  ///< as words that `strata train --set` takes
  bool is_tiny = false;     ///< most of a step is what calling operators costs
  /// Bitwise plans must take at most this part of PyTorch eager's time.
  double eager_limit = 0.90;
  bool needs_gpu = false;
};

std::span<const BenchShape> BenchShapes();

/// The configuration of a run of the shape: any number of steps, on a GPU in bf16.
Result<TrainConfig> ConfigOf(const BenchShape& shape, DeviceKind device);

}  // namespace strata::cli
