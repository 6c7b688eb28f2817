#pragma once
#include <cstdint>

#include "base/result.h"
#include "ir/module.h"
#include "prove/call.h"

namespace strata::prove {

/// A random value of a type. Integers are small. Errors: a type or size that is not known, or more
/// elements than a proof evaluates.
Result<Value> RandomValue(const Module& module, TypeId type, uint64_t key);

}  // namespace strata::prove
