#include <cstddef>
#include <cstdint>
#include <string_view>

#include "diff/diff.h"
#include "diff/patch/apply.h"
#include "diff/patch/make.h"
#include "diff/patch/parse.h"
#include "ir/fx/fx.h"
#include "ir/text/native_text.h"
#include "ir/verify.h"

namespace strata {
namespace {

constexpr std::string_view kSeparator = "\n====\n";

/// Between any two graphs there is a patch, and it gives the second one.
void CheckRoundTrip(const Graph& before, const Graph& after, bool metadata) {
  const Result<GraphDiff> diff = Diff(before, after);
  STRATA_CHECK(diff.has_value());
  const std::string text = MakePatch(*diff, {.metadata = metadata});
  const Result<Patch> patch = ParsePatch(text);
  STRATA_CHECK(patch.has_value(), "{}\n{}", patch.error().message(), text);
  const Result<std::unique_ptr<Module>> result = ApplyPatch(before, *patch);
  STRATA_CHECK(result.has_value(), "{}\n{}", result.error().message(), text);
  const auto scope = metadata ? FingerprintScope::kEverything : FingerprintScope::kComputation;
  STRATA_CHECK(FingerprintOf((*result)->graph({0}), scope) == FingerprintOf(after, scope), "{}",
               text);
}

/// The same between FX texts that were read without loss, where the result is FX text again.
void CheckFxRoundTrip(std::string_view before_text, std::string_view after_text) {
  FxOptions strict;
  strict.strict = true;
  const Result<FxDocument> before = ParseFx(before_text, strict);
  const Result<FxDocument> after = ParseFx(after_text, strict);
  if (!before || !after) return;
  const Result<GraphDiff> diff = Diff(before->graph(), after->graph());
  STRATA_CHECK(diff.has_value());
  const Result<Patch> patch = ParsePatch(MakePatch(*diff));
  STRATA_CHECK(patch.has_value());
  const Result<std::unique_ptr<Module>> result = ApplyPatch(before->graph(), *patch);
  STRATA_CHECK(result.has_value(), "{}\n{}", result.error().message(), *patch->text);
  const std::string printed = PrintFx((*result)->graph({0}), {.comments = false});
  const Result<FxDocument> again = ParseFx(printed, strict);
  STRATA_CHECK(again.has_value(), "{}\n{}", again.error().message(), printed);
  STRATA_CHECK(FingerprintOf(again->graph()) == FingerprintOf(after->graph()), "{}", printed);
}

/// Any text is a patch or an error; a patch that names the base gives a sound graph or an error.
void CheckPatchText(const Graph& base, std::string_view text) {
  Result<Patch> patch = ParsePatch(text);
  if (!patch) return;
  patch->before.fingerprint = FingerprintOf(base);
  const Result<std::unique_ptr<Module>> result = ApplyPatch(base, *patch);
  if (!result) return;
  const Status sound = Verify(**result);
  STRATA_CHECK(sound.has_value(), "{}", sound.error().message());
}

}  // namespace
}  // namespace strata

// A native text, a separator, and the text of a patch or of another graph; or two FX texts.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strata;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t separator = text.find(kSeparator);
  if (separator == std::string_view::npos) return 0;
  const std::string_view rest = text.substr(separator + kSeparator.size());
  if (text.substr(0, separator).find("def forward") != std::string_view::npos) {
    CheckFxRoundTrip(text.substr(0, separator), rest);
    return 0;
  }
  const auto before = ParseText(text.substr(0, separator));
  if (!before || (*before)->programs().empty()) return 0;
  const Graph& base = (*before)->graph((*before)->programs()[0]);
  if (rest.starts_with("strata")) {
    CheckPatchText(base, rest);
    return 0;
  }
  const auto after = ParseText(rest);
  if (!after || (*after)->programs().empty()) return 0;
  for (const bool metadata : {false, true})
    CheckRoundTrip(base, (*after)->graph((*after)->programs()[0]), metadata);
  return 0;
}
