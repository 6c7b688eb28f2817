#pragma once
#include "refs/ref.h"

namespace strata {

/// Loads the graph that `ref` names in a trace: `ref.file`, or what was imported from it at `path`.
/// A pass without a side is the graph after it; a graph without a pass is the last one of its name.
Result<Snapshot> LoadFromTrace(const Ref& ref, const std::string& path);

}  // namespace strata
