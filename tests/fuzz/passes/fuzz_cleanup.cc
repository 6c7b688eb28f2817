#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "passes/core/pass_manager.h"
#include "passes/passes.h"

// Whatever module a text gives, cleanup keeps it sound and finds nothing the second time.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto module = strata::ParseText({reinterpret_cast<const char*>(data), size});
  if (!module || !strata::Verify(**module)) return 0;
  strata::PassManager manager;
  auto passes = strata::ParsePipeline("dce,canonicalize", strata::AllPasses());
  STRATA_CHECK(passes.has_value());
  for (auto& pass : *passes)
    manager.Add(std::move(pass));
  const auto first = manager.Run(**module);
  STRATA_CHECK(first.has_value(), "{}", first.error().message());
  const auto second = manager.Run(**module);
  STRATA_CHECK(second.has_value(), "{}", second.error().message());
  STRATA_CHECK(*second == strata::Changed::kNo);
  return 0;
}
