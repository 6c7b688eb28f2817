#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/fingerprint.h"
#include "ir/fx/fx.h"
#include "ir/verify.h"

// Any bytes give a sound graph or an error. What was read without loss prints to a text that reads
// back to the same graph.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strata;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(LooksLikeFxGraph(text));
  const Result<FxDocument> document = ParseFx(text);
  if (!document) return 0;
  const Status verified = Verify(*document->module);
  STRATA_CHECK(verified.has_value(), "{}", verified.error().message());
  const std::string printed = PrintFx(document->graph());

  FxOptions strict;
  strict.strict = true;
  STRATA_CHECK(ParseFx(text, strict).has_value() == (document->num_diagnostics == 0));
  if (document->num_diagnostics > 0) return 0;
  const Result<FxDocument> again = ParseFx(printed, strict);
  STRATA_CHECK(again.has_value(), "{}\n{}\nfrom\n{}", again.error().message(), printed, text);
  STRATA_CHECK(FingerprintOf(again->graph()) == FingerprintOf(document->graph()), "{}\nfrom\n{}",
               printed, text);
  return 0;
}
