#pragma once
#include <optional>
#include <string>

#include "base/result.h"
#include "diff/policy/policy.h"

namespace strata::cli {

struct DiffRunsOptions {
  std::string before, after;    ///< traces, logs, or folders of them
  std::string format = "text";  ///< text, json, md or html
  const Policy* policy = nullptr;
  std::string link;  ///< md: address of the full report
  bool meta = false, all = false, colours = false;
};

/// The comparison of two runs: all graphs, as they appear and after each pass, by name and
/// compilation, rank by rank.
struct RunsDiff {
  std::string text;
  std::string note;     ///< what the text leaves out; "": nothing
  bool passes = false;  ///< graphs and generated code are equal, or the policy allows differences
};

/// Whether a REF stands for a run as a whole: it selects no graph and no pass, and names a folder
/// or a file of several graphs.
bool NamesRun(const std::string& ref);

/// A graph or pass that only one side has does not pass, unless a compiler cache explains it.
/// Generated code that differs does not pass either, unless there is a policy.
/// Html shows one rank, the first with a graph that does not pass.
/// Errors: a graph that cannot be loaded.
Result<RunsDiff> DiffRuns(const DiffRunsOptions& options);

}  // namespace strata::cli
