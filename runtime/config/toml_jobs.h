#pragma once
#include "runtime/config/reader.h"

namespace strata {

/// Reads what only torchtitan's configurations in TOML have, beside other names of keys
/// (runtime/config/names.h): it has no effect on a run of Strata's, or is refused with what to do
/// instead.
void ReadTomlJob(ConfigReader& reader);

}  // namespace strata
