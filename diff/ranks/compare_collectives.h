#pragma once
#include <vector>

#include "diff/ranks/collectives.h"

namespace strata {

/// Compares what the ranks of each group run, in order. Ranks that name a group equally are of one
/// group; when more name it than it has members, of several, each with every n-th rank (the groups
/// of a mesh axis), cut so that as much as possible agrees. Sends are compared with the receives of
/// their peers. Ranks with equal lists are looked at once.
std::vector<CollectiveMismatch> CompareCollectives(const std::vector<RankCollectives>& ranks);

}  // namespace strata
