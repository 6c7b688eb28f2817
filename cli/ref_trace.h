#pragma once
#include "cli/ref.h"

namespace strata::cli {

/// Loads what `ref` names in the trace `ref.file`. A pass without a moment is the graph after it; a
/// graph without a pass is the last one of its name.
Result<Snapshot> LoadFromTrace(const Ref& ref);

}  // namespace strata::cli
