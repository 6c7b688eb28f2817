#pragma once
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "runtime/config/config.h"
#include "runtime/config/reader.h"

namespace strata {

/// Reads the degrees of parallelism, and what torchtitan's configurations say of communication, of
/// narrower types than bf16 and of saving memory: the latter is accepted where it says what a run
/// does anyway, and refused, with the value that is possible, where it asks for more.
void ReadRanks(ConfigReader& reader, ParallelismConfig& parallelism);

/// Gives `dp_shard = -1` the ranks of `world` that the other degrees leave, and makes the mesh.
/// Without a world there are as many ranks as the degrees say. Errors: degrees below 1, degrees
/// that do not multiply to `world`, experts' ranks that do not divide those that they borrow.
Status CompleteRanks(const ConfigReader& reader, std::optional<int64_t> world,
                     ParallelismConfig& parallelism);

/// Errors: heads, experts and sequences that the ranks cannot share evenly.
Status CheckModelOnRanks(const ConfigReader& reader, const TrainConfig& config);

}  // namespace strata
