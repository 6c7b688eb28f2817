#pragma once
#include <string_view>

#include "runtime/plan/plan.h"

namespace strata {

/// Matrix products in whichever library is the fastest here (runtime/aten/fast_products.h).
inline constexpr std::string_view kFastMm = "strata.fast_mm.default";
inline constexpr std::string_view kFastBmm = "strata.fast_bmm.default";
inline constexpr std::string_view kFastGroupedMm = "strata.fast_grouped_mm.default";
/// Whether it is one of them.
bool IsFastProduct(std::string_view op);

/// Lets a step that is a product (`aten.mm`, `aten.bmm`, `aten._grouped_mm`) call these instead, if
/// its sizes are known and large enough: to call another library costs about 10 µs.
void UseFastProduct(const Plan& plan, PlanStep& step);

}  // namespace strata
