#pragma once
#include <optional>
#include <span>

#include "prove/foreign/program.h"
#include "prove/proof.h"

namespace strata::prove {

/// The first collective that a rank calls where the first rank of its group calls another one, or
/// one of other sizes: they would wait for each other, or exchange what does not belong together.
/// None: all ranks of each group call the same, in one order.
std::optional<Finding> FindOtherOrder(std::span<const CompiledProgram> ranks);

}  // namespace strata::prove
