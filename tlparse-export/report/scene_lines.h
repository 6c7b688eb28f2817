#pragma once
#include <string>

#include "diff/model/graph_diff.h"
#include "scene/scene.h"
#include "tlparse-export/report/texts.h"

namespace strata {

/// The printed lines of a scene's nodes; for the form, see SceneData::lines.
std::string LinesJson(const GraphDiff& diff, const Scene& scene, Texts& lines);

}  // namespace strata
