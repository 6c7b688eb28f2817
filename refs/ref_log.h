#pragma once
#include <string_view>

#include "refs/ref.h"

namespace strata {

/// Loads the graph that `ref` names in the log `content` of PyTorch. A pass without a side is the
/// graph after it; a graph without a pass is the last one of its name.
Result<Snapshot> LoadFromLog(const Ref& ref, std::string_view content, const LoadOptions& options);

/// Loads the graph of an FX text.
Result<Snapshot> LoadFxText(const Ref& ref, std::string_view content, const LoadOptions& options);

/// Loads the graph of a program that runs it (ir/fx/program.h). Warns of results whose types are
/// not known.
Result<Snapshot> LoadFxProgram(const Ref& ref, std::string_view content,
                               const LoadOptions& options);

}  // namespace strata
