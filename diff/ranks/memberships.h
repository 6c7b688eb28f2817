#pragma once
#include <vector>

#include "diff/ranks/collectives.h"

namespace strata {

/// Finds groups that not all of their ranks use: such a collective waits for ever. Graphs hardly
/// say who belongs to a group. What is known:
///
///  - Older operators list the ranks of their group.
///  - Gathers and scatters say how many there are. A name may stand for all groups of a mesh axis,
///    so the ranks that use it must be a multiple of that.
///  - Ranks that run the same but for names of groups use groups of one size. A name that fewer of
///    them have, in a smaller group, is a wrong one.
///
/// Without such evidence (an all-reduce in a group of one rank) nothing is said: it may well be a
/// group of one. Sizes say nothing where ranks are evidently left out: when their numbers have
/// gaps, when a group is larger than all that were given, or when all groups of an axis lack ranks
/// alike. Each group is reported once.
std::vector<CollectiveMismatch> CheckMemberships(const std::vector<RankCollectives>& ranks);

}  // namespace strata
