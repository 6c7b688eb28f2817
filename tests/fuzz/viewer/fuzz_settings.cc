#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "viewer/model/settings.h"

// Any text is settings. What is kept of it is printed and read back as it was.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using strata::viewer::Settings;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Settings settings = strata::viewer::ParseSettings(text);
  STRATA_CHECK(settings.recent.size() <= Settings::kMostRecent);
  STRATA_CHECK(strata::viewer::ParseSettings(strata::viewer::PrintSettings(settings)) == settings);
  return 0;
}
