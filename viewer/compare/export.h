#pragma once
#include <string>

#include "scene/geometry.h"
#include "viewer/compare/comparison.h"

namespace strata::viewer {

/// The picture of a laid-out graph, with the colours of the light theme; as large as the scene.
/// Names of nodes and types are text, so they can be searched and copied.
std::string SvgOf(const Comparison& comparison, const SceneGeometry& geometry);

/// The whole union graph for Graphviz: nodes in clusters of their modules, differences in colour.
std::string DotOf(const Comparison& comparison);

/// `{"schema": "strata.graph/1", "title", "nodes": […], "edges": […]}`; docs/viewer.md lists the
/// fields.
std::string JsonOf(const Comparison& comparison);

}  // namespace strata::viewer
