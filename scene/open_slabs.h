#pragma once
#include <cstdint>
#include <set>
#include <vector>

#include "scene/scene.h"

namespace strata {

/// Child clusters of each cluster, in order.
std::vector<std::vector<int32_t>> ChildrenOf(const Scene& scene);

/// Opens `cluster` and all slabs around it.
void OpenTo(const Scene& scene, int32_t cluster, std::set<int32_t>& open);

/// Opens slabs that are the only content of `cluster`, downwards: closed, there would be nothing
/// to see.
void OpenOnlyChild(const Scene& scene, int32_t cluster, std::set<int32_t>& open);

/// The slabs that are open when a scene is first shown: those around the first difference, and in a
/// small scene around all.
std::set<int32_t> FirstOpen(const Scene& scene);

}  // namespace strata
