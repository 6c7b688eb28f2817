#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/fx/program.h"
#include "ir/verify.h"

// Any bytes give a sound graph or an error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strata;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(LooksLikeFxProgram(text));
  const Result<FxProgram> program = ParseFxProgram(text, {});
  if (!program) return 0;
  const Status verified = Verify(*program->document.module);
  STRATA_CHECK(verified.has_value(), "{}", verified.error().message());
  return 0;
}
