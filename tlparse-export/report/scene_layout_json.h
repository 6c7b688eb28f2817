#pragma once
#include "base/json.h"
#include "scene/scene.h"
#include "tlparse-export/report/texts.h"

namespace strata {

/// The lines between nodes: of each node, from where and with which status.
void WriteEdges(const Scene& scene, JsonWriter& json);

/// The slabs and what stands in them: rows and columns of nodes, and the order of all nodes.
void WriteClusters(const Scene& scene, Texts& names, JsonWriter& json);

}  // namespace strata
