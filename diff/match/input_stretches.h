#pragma once
#include <span>
#include <utility>
#include <vector>

#include "diff/match/matching.h"

namespace strata {

/// Inputs, or constants, that stand in a stretch of the list which each side has once: several in a
/// row with the same types and users. In the order of both lists.
///
/// REQUIRES: both lists ascend.
std::vector<std::pair<EntityId, EntityId>> CommonStretches(const Matching& matching,
                                                           std::span<const EntityId> before,
                                                           std::span<const EntityId> after);

}  // namespace strata
