#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// The shapes of these names. Errors: there is none of a name.
Result<std::vector<const BenchShape*>> FindShapes(const std::vector<std::string>& names);

/// A run of the shape, as words that `strata train --set` takes: any number of steps, on a GPU in
/// bf16.
std::vector<std::string> SettingsOf(const BenchShape& shape, DeviceKind device);
/// The configuration of such words.
Result<TrainConfig> ConfigOf(const std::vector<std::string>& settings);
Result<TrainConfig> ConfigOf(const BenchShape& shape, DeviceKind device);

}  // namespace strata::cli
