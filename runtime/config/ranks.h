#pragma once
#include "runtime/config/reader.h"

namespace strata {

/// Reads what torchtitan's configurations say of several ranks, of narrower types than bf16 and of
/// saving memory: accepted where it says what a run on one rank does anyway, and refused, with the
/// value that is possible, where it asks for more.
void ReadRanks(ConfigReader& reader);

}  // namespace strata
