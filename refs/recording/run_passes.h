#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/core/pass.h"

namespace strata {

/// A pass as pipeline text can name it, with lines about its options.
struct PassWords {
  std::string name, summary;
  struct Option {
    std::string name, words;  ///< "plan", "(string) placements of …"
  };
  std::vector<Option> options;
};
/// Every pass, in the order of `strata opt --list`.
std::vector<PassWords> AllPassWords();

/// How many passes a pipeline has. Errors: as ParsePipeline.
Result<int> CountPasses(std::string_view pipeline);

/// What RunPasses records.
struct PassesToRun {
  std::string pipeline;
  std::string source;   ///< a REF of the graph that they run on
  std::string command;  ///< that does the same
  std::string trace;    ///< the file to write
  /// Called before each pass with its index; an error ends the pipeline.
  std::function<Status(int index)> before_pass;
};

/// Runs passes on a module and records each of them in a trace of its own, as
/// `strata opt REF --passes PIPELINE -o TRACE` does.
///
/// Errors: as ParsePipeline and TraceWriter::Create, then nothing is written; that of a pass, then
/// the trace holds what was done, with the pass that failed.
Status RunPasses(Module& module, const PassesToRun& run);

}  // namespace strata
