#pragma once
#include <memory>
#include <span>

#include "base/result.h"
#include "ir/module.h"

namespace strata::prove {

/// Copies of graphs as the programs of one module, in their order and with their StableIds: types
/// of several modules do not mix. Errors: bodies of one name that differ.
Result<std::unique_ptr<Module>> InOneModule(std::span<const Graph* const> graphs);

}  // namespace strata::prove
