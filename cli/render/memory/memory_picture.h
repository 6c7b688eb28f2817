#pragma once
#include <string>

#include "cli/render/memory/memory_front.h"
#include "ir/graph.h"

namespace strata::cli {

/// The added time of each plan of a front over its peak, as an SVG file. Each point has its plan as
/// a tooltip.
std::string FrontPicture(const Graph& graph, const MemoryFront& front);

/// The same with a heading for the report's page, whose style sheet it uses.
std::string FrontMarkup(const Graph& graph, const MemoryFront& front);

}  // namespace strata::cli
