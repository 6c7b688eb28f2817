#pragma once
#include <string>

#include "prove/values/call.h"

namespace strata::prove {

/// What a call draws where that depends on numbers that it states and on a shape: the same text for
/// operators that draw the same numbers, such as `rand` and `uniform_`. Empty: it depends on other
/// values, or the operator is not known.
std::string DrawnBy(const Call& call);

/// Truth values, each true with a probability `p`, as DrawnBy describes them.
std::string TruthsOf(double p);

}  // namespace strata::prove
