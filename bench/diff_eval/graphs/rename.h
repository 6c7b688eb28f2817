#pragma once
#include "ir/module.h"

namespace strata::bench {

/// Gives all nodes of all graphs the names that a new trace would: by operator, numbered in program
/// order.
void RenameAll(Module& module);

}  // namespace strata::bench
