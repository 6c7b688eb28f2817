#include "runtime/plan/plan.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include <xxhash.h>

#include "runtime/plan/fast_products.h"

namespace strata {

std::optional<size_t> PlanStep::ResultOfNode(size_t i) const {
  if (node_results.empty()) return i;
  if (i >= node_results.size() || node_results[i] < 0) return std::nullopt;
  return static_cast<size_t>(node_results[i]);
}

Fingerprint Plan::fingerprint() const {
  uint64_t flags = 0;
  for (const bool flag :
       {options.on_gpu, options.keep_values, options.fold_views, options.static_memory,
        options.in_place, options.hoist_constants, options.arena_results, options.dynamic_arena,
        options.separate_outputs, options.donate_gradients, options.unfuse}) {
    flags = flags << 1 | (flag ? 1U : 0U);
  }
  std::vector<uint64_t> content = {graph_fingerprint.hi, graph_fingerprint.lo, flags};
  for (const auto& [symbol, size] : sizes) {
    content.push_back(XXH3_64bits(symbol.data(), symbol.size()));
    content.push_back(static_cast<uint64_t>(size));
  }
  for (const StepId id : IdsOf(steps)) {  // a graph's fingerprint knows no attributes
    const FlexKernelId flex = steps[id].flex_kernel;
    if (IsFastProduct(steps[id].op) || (flex.valid() && flex_kernels[flex].is_causal))
      content.push_back(static_cast<uint64_t>(id.index));
  }
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size() * sizeof(uint64_t));
  return {.hi = hash.high64, .lo = hash.low64};
}

}  // namespace strata
