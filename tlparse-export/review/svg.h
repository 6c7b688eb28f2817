#pragma once
#include <cstddef>
#include <string>

#include "diff/model/graph_diff.h"

namespace strata {

struct ChangeSvgOptions {
  size_t max_nodes = 120;  ///< drawn at most; the picture says how many changed nodes it lacks
  double width = 1400;     ///< parts stand beside each other up to this width, in pixels
};

/// A picture of what changed: the nodes that differ and their neighbours, parts that are not
/// connected beside each other, repetitions of a pattern once. One SVG without scripts, fonts or
/// links; statuses have a sign besides their colour. For comments, pages and slides.
std::string ChangeSvg(const GraphDiff& diff, const ChangeSvgOptions& options = {});

/// A picture of a whole graph with its bodies, drawn the same way.
std::string GraphSvg(const Graph& graph, const ChangeSvgOptions& options = {.max_nodes = 1000});

}  // namespace strata
