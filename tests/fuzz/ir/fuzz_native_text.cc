#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/fingerprint.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"

// Any bytes give a module or an error; a module prints to text that reads back to the same module.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto module = strata::ParseText(text);
  if (!module) return 0;
  STRATA_CHECK(strata::Verify(**module).has_value());
  const std::string printed = strata::PrintText(**module, {.stable_ids = true});
  auto again = strata::ParseText(printed);
  STRATA_CHECK(again.has_value(), "{}\n{}", again.error().message(), printed);
  STRATA_CHECK(strata::PrintText(**again, {.stable_ids = true}) == printed, "{}", printed);
  return 0;
}
