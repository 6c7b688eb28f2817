#pragma once
#include <string_view>

namespace strata {

/// What files of CudaFlexSource have after kCudaPreamble: the algorithms, as templates over
/// FlexShape.
extern const std::string_view kCudaFlexPreamble;

}  // namespace strata
