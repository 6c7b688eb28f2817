#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/config/config.h"

// Any text is refused with one line, or gives a configuration whose model can be held in memory.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto format : {strata::ConfigFormat::kToml, strata::ConfigFormat::kJson}) {
    const auto config = strata::ParseTrainConfig(text, format, "fuzz");
    if (!config) {
      STRATA_CHECK(config.error().message().find('\n') == std::string_view::npos);
      continue;
    }
    // No product of a few sizes overflows.
    const double width =
        static_cast<double>(config->n_heads) * static_cast<double>(config->head_dim);
    STRATA_CHECK(config->rope_dim() > 0 && config->rope_dim() % 2 == 0);
    STRATA_CHECK(width * static_cast<double>(config->dim) <= 0x1p40);
    STRATA_CHECK(!config->moe || config->moe->top_k <= config->moe->num_experts);
  }
  return 0;
}
