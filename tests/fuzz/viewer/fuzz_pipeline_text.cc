#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "viewer/model/pipeline_text.h"

// Any text can be completed, and a completion names a pass or an option that exists.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using strata::viewer::PipelineCompletion;
  static const std::vector<strata::PassWords> kPasses = {
      {"dce", "", {}}, {"place", "", {{"mesh", ""}, {"plan", ""}}}, {"replace", "", {}}};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const PipelineCompletion& completion : strata::viewer::CompletePipeline(text, kPasses)) {
    const bool is_option = completion.name == "mesh" || completion.name == "plan";
    STRATA_CHECK(completion.text.ends_with(completion.name + (is_option ? "=" : "")));
  }
  return 0;
}
