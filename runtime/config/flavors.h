#pragma once
#include <vector>

#include "base/result.h"
#include "runtime/config/tree.h"

namespace strata {

/// Adds the model that key `flavor` names: of the configuration in `configs/<model>/<flavor>.toml`
/// the sizes and the tables `rope`, `moe` and `mla`, where `entries` do not have a field. Flavors
/// are torchtitan's (`8B`, `30B-A3B`); case does not matter. Without the key nothing changes.
///
/// Errors: the model has no such flavor; the message lists those that it has.
Status AddFlavor(std::vector<ConfigEntry>& entries);

}  // namespace strata
