#pragma once
#include <string_view>

#include "runtime/plan/plan.h"

namespace strata {

/// Matrix products in whichever library is the fastest here (runtime/aten/fast_products.h).
inline constexpr std::string_view kFastMm = "strata.fast_mm.default";
inline constexpr std::string_view kFastBmm = "strata.fast_bmm.default";

/// Lets a step that is a product (`aten.mm`, `aten.bmm`) call these instead, if its sizes are known
/// and large enough: to call another library costs about 10 µs.
void UseFastProduct(const Plan& plan, PlanStep& step);

}  // namespace strata
