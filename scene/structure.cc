#include <algorithm>

#include "diff/match/labels.h"
#include "diff/pattern/layers.h"
#include "scene/parts.h"

namespace strata::internal {

IdVector<SceneNodeId, std::string> PathsByStructure(const GraphDiff& diff, const Scene& scene) {
  for (const Listing* listing : {&diff.before, &diff.after}) {
    for (EntityId id : listing->ids()) {
      if (listing->graph(id).node((*listing)[id].node).module.valid()) return {};
    }
  }
  const Labels labels(diff.before, KnownTypeFields(diff.before));
  const Layers layers(diff.before, labels);
  if (!layers.by_structure()) return {};
  IdVector<SceneNodeId, std::string> paths;
  paths.reserve(scene.nodes.size());
  std::string_view last;  // where an added node stands: behind the one before it
  for (const SceneNode& node : scene.nodes) {
    const Listing& listing = node.before.valid() ? diff.before : diff.after;
    const EntityId id = node.before.valid() ? node.before : node.after;
    if (node.before.valid()) last = layers.path(id);
    // Weights belong to the layer that uses them, but inputs have a slab of their own.
    paths.Add(std::string(listing[id].kind == EntityKind::kCompute ? last : std::string_view()));
  }
  return paths;
}

}  // namespace strata::internal
