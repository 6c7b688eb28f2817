#pragma once
#include <string>
#include <vector>

#include "viewer/compare/comparison.h"

namespace strata::viewer {

/// The lines of the C++ that a node runs, as shown; none: Strata generates no code for it.
std::vector<std::string> GeneratedLinesOf(const Comparison& comparison, SceneNodeId node);

}  // namespace strata::viewer
