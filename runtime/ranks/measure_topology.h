#pragma once
#include "base/result.h"
#include "passes/placement/costs/topology.h"

namespace strata {

/// What ranks that are threads of a process compute and communicate with on this machine, one core
/// each, measured while all cores work: a small operator, memory, products of matrices by type, and
/// all-gathers between two and between four ranks. Takes some seconds.
/// Errors: those of RankTeam::Run.
Result<Topology> MeasureTopology();

}  // namespace strata
