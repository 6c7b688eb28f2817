#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "passes/core/registry.h"

namespace {

class Tunable final : public strata::Pass {
 public:
  static constexpr std::string_view kSummary = "has options of every type";

  struct Options {
    int64_t depth = 1;
    double budget = 0.5;
    bool strict = false;
    std::string plan, mode = "fast";
    void Bind(strata::OptionList& list) {
      list.Add("depth", depth, "");
      list.Add("budget", budget, "");
      list.Add("strict", strict, "");
      list.Add("plan", plan, "");
      list.Add("mode", mode, "");
    }
  };

  explicit Tunable(const Options& /*options*/) {}
  strata::Result<strata::Changed> Run(strata::Module& /*module*/) override {
    return strata::Changed::kNo;
  }
};

}  // namespace

// Any bytes give passes or an error; passes print to text that gives the same passes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  strata::PassRegistry registry;
  registry.Add<Tunable>("tune");
  const auto print = [&](std::string_view text) -> strata::Result<std::string> {
    STRATA_TRY(const auto passes, strata::ParsePipeline(text, registry));
    std::string printed;
    for (const auto& pass : passes)
      printed += (printed.empty() ? "" : ",") + pass->Text();
    return printed;
  };
  const auto printed = print({reinterpret_cast<const char*>(data), size});
  if (!printed) return 0;
  const auto again = print(*printed);
  STRATA_CHECK(again.has_value(), "{}\n{}", again.error().message(), *printed);
  STRATA_CHECK(*again == *printed, "{}\n{}", *printed, *again);
  return 0;
}
