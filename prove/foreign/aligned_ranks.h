#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "prove/foreign/program.h"

namespace strata::prove {

/// Programs, and the modules of their graphs if these are new.
struct AlignedRanks {
  std::vector<CompiledProgram> programs;
  std::vector<std::shared_ptr<const Module>> modules;
};

/// A rank whose part of a tensor is smaller than that of others pads it before they exchange parts,
/// and cuts off what was padded: by nodes that others do not have. Gives these such nodes that pad
/// and cut nothing, so that all ranks have the same nodes in one order.
///
/// Errors: ranks that run other nodes, too.
Result<AlignedRanks> AlignRanks(std::span<const CompiledProgram> ranks);

}  // namespace strata::prove
