#pragma once
#include <string_view>

namespace strata::testing {

/// Kernels of small tensors take 10 µs, collectives 30 µs.
inline constexpr std::string_view kSlowTopology = R"(
[device]
memory_gib = 1
memory_tib_per_s = 1
efficiency = 1.0
launch_us = 10.0
tflops = { f32 = 1.0 }
[network]
model = "simple"
ranks_per_node = 2
base_us = 30.0
hop_us = 0.0
intra_gb_per_s = 1e9
inter_gb_per_s = 1e9
)";

}  // namespace strata::testing
