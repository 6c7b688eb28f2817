#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "prove/values/call.h"

namespace strata::prove {

/// Python's arithmetic on integers, as logs have it for sizes: `_operator.floordiv(s77, 2)`. None:
/// another operator, or an operand is not an integer.
std::optional<int64_t> EvaluateIntegers(const Call& call);

/// Whether the call converts numbers to integers whose integer part is not known.
bool TruncatesUnknown(const Call& call, std::span<const Value> results);

}  // namespace strata::prove
