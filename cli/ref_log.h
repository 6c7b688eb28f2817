#pragma once
#include <string_view>

#include "cli/ref.h"

namespace strata::cli {

/// Loads what `ref` names in the log `content` of PyTorch. A pass without a moment is the graph
/// after it; a graph without a pass is the last one of its name.
Result<Snapshot> LoadFromLog(const Ref& ref, std::string_view content, const LoadOptions& options);

/// Loads the graph of an FX text.
Result<Snapshot> LoadFxText(const Ref& ref, std::string_view content, const LoadOptions& options);

}  // namespace strata::cli
