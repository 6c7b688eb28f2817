#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "refs/recording/run_passes.h"

namespace strata::viewer {

/// What a pipeline that is being written may become.
struct PipelineCompletion {
  std::string text;         ///< the whole pipeline then
  std::string name, words;  ///< the pass or the option, and what it does
};

/// Passes that fit the last word of `text`, those first that begin with it; options of the pass
/// whose braces are open, or that is written in full.
std::vector<PipelineCompletion> CompletePipeline(std::string_view text,
                                                 const std::vector<PassWords>& passes);

}  // namespace strata::viewer
