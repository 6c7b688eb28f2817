#include <cstddef>
#include <cstdint>
#include <string_view>

#include "viewer/model/script_text.h"

// Any text is a script whose lines are numbered in order, or an error of one line with its place.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = strata::viewer::ParseScript(text, "s");
  if (!lines) {
    STRATA_CHECK(lines.error().message().starts_with("s:"));
    STRATA_CHECK(lines.error().message().find('\n') == std::string_view::npos);
    return 0;
  }
  int32_t last = 0;
  for (const strata::viewer::ScriptLine& line : *lines) {
    // A line of the script gives one, or one for each key.
    STRATA_CHECK(!line.verb.empty() &&
                 (line.number > last || (line.number == last && line.verb == "key")));
    last = line.number;
  }
  return 0;
}
