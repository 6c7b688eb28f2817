#pragma once
#include <set>
#include <vector>

#include "base/id.h"
#include "scene/scene.h"

namespace strata {

/// Child clusters of each cluster, in order.
IdVector<ClusterId, std::vector<ClusterId>> ChildrenOf(const Scene& scene);

/// Opens `cluster` and all slabs around it.
void OpenTo(const Scene& scene, ClusterId cluster, std::set<ClusterId>& open);

/// Opens slabs that are the only content of `cluster`, downwards: closed, there would be nothing
/// to see.
void OpenOnlyChild(const Scene& scene, ClusterId cluster, std::set<ClusterId>& open);

/// The slabs that are open when a scene is first shown: those around the first difference, and in a
/// small scene around all.
std::set<ClusterId> FirstOpen(const Scene& scene);

}  // namespace strata
