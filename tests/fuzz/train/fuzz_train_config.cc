#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/train/config.h"
#include "runtime/train/parameters.h"

// Any text is refused with one line, or gives a configuration whose model has countable parameters.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto format : {strata::ConfigFormat::kToml, strata::ConfigFormat::kJson}) {
    const auto config = strata::ParseTrainConfig(text, format, "fuzz");
    if (!config) {
      STRATA_CHECK(config.error().message().find('\n') == std::string_view::npos);
      continue;
    }
    int64_t total = 0;
    for (const strata::ParameterSpec& spec : strata::Llama3Parameters(*config)) {
      STRATA_CHECK(spec.elements() > 0 && spec.elements() <= (int64_t{1} << 40), "{}", spec.name);
      total += spec.elements();
    }
    STRATA_CHECK(total <= int64_t{1} << 41);
  }
  return 0;
}
