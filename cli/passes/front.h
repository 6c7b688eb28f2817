#pragma once
#include <string>

#include "base/result.h"
#include "cli/render/memory_front.h"
#include "refs/ref.h"

namespace strata::cli {

/// How the plans of a front are found.
struct FrontOptions {
  bool offload = true;   ///< results may be copied to the host
  std::string topology;  ///< whose times are modelled; "": by the device of the graph
};

/// Plans of less memory for more time, of the graph that `ref` named. Nodes cost what the run's
/// profile recorded for them, if it has one, else what the model says. Errors: a graph that has
/// copies already.
Result<MemoryFront> FrontOf(const Snapshot& snapshot, const std::string& ref,
                            const FrontOptions& options);

}  // namespace strata::cli
