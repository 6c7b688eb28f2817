#pragma once
#include "runtime/plan/plan.h"

namespace strata {

/// The last reader of a value ends its lifetime. As FX's `delete_unused_values`, but for inputs,
/// which belong to the caller, and constants, which serve the next run.
void AddKills(Plan& plan);

}  // namespace strata
