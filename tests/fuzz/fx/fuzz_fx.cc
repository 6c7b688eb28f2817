#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ir/fingerprint.h"
#include "ir/fx/fx.h"
#include "ir/fx/known_lines.h"
#include "ir/verify.h"
#include "tests/support/fx_everything.h"

namespace {

using namespace strata;

/// Every third line is left out, so that names mean something else.
std::string Thinned(std::string_view text) {
  std::string out;
  for (size_t line = 0; !text.empty(); ++line) {
    const std::string_view whole = text.substr(0, text.find('\n') + 1);  // npos + 1 is 0
    if (whole.empty()) break;
    if (line % 3 != 2) out += whole;
    text.remove_prefix(whole.size());
  }
  return out;
}

/// Lines that other texts have in common with a text do not change what it gives.
void CheckKnownLines(std::string_view text) {
  const std::string thinned = Thinned(text);
  fx::KnownLines known_lines;
  for (const std::string_view each : {std::string_view(thinned), text, text}) {
    const Result<FxDocument> alone = ParseFx(each);
    const Result<FxDocument> known = ParseFx(each, {.known_lines = &known_lines});
    STRATA_CHECK(alone.has_value() == known.has_value());
    if (!alone) continue;
    STRATA_CHECK(testing::Everything(*alone) == testing::Everything(*known), "from\n{}", each);
    const std::string_view lines = each.substr(0, each.rfind('\n'));
    STRATA_CHECK(PrintsAs(alone->graph(), lines) == PrintsAs(known->graph(), lines, &known_lines),
                 "from\n{}", each);
  }
}

}  // namespace

// Any bytes give a sound graph or an error. What was read without loss prints to a text that reads
// back to the same graph.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(LooksLikeFxGraph(text));
  const Result<FxDocument> document = ParseFx(text);
  if (!document) return 0;
  CheckKnownLines(text);
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
