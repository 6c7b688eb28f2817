#include "runtime/exec/tensor_difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include <ATen/Dispatch_v2.h>
#include <ATen/ops/view_as_real.h>

namespace strata {
namespace {

using at::Tensor;

/// Place of a number among all of its type, so that neighbours differ by 1 and both zeros are 0.
template <class Float, class Bits>
int64_t Place(Float value) {
  using Signed = std::make_signed_t<Bits>;
  const auto bits = std::bit_cast<Signed>(value);
  constexpr auto kLowest = std::numeric_limits<Signed>::min();
  return bits >= 0 ? static_cast<int64_t>(bits) : static_cast<int64_t>(kLowest) - bits;
}

template <class T>
double UlpsBetween(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Large neighbours are the same double.
    if (a == b) return 0.0;
    return std::max(1.0, std::abs(static_cast<double>(a) - static_cast<double>(b)));
  } else {
    if (a == b || (std::isnan(static_cast<double>(a)) && std::isnan(static_cast<double>(b)))) {
      return 0.0;
    }
    if (std::isnan(static_cast<double>(a)) || std::isnan(static_cast<double>(b))) {
      return std::numeric_limits<double>::infinity();
    }
    if constexpr (sizeof(T) == 8) {
      const int64_t low = std::min(Place<T, uint64_t>(a), Place<T, uint64_t>(b));
      const int64_t high = std::max(Place<T, uint64_t>(a), Place<T, uint64_t>(b));
      return static_cast<double>(static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
    } else if constexpr (sizeof(T) == 4) {
      return static_cast<double>(std::abs(Place<T, uint32_t>(a) - Place<T, uint32_t>(b)));
    } else if constexpr (sizeof(T) == 2) {
      return static_cast<double>(std::abs(Place<T, uint16_t>(a) - Place<T, uint16_t>(b)));
    } else {
      return static_cast<double>(std::abs(Place<T, uint8_t>(a) - Place<T, uint8_t>(b)));
    }
  }
}

template <class T>
TensorDifference CompareElements(const Tensor& before, const Tensor& after) {
  TensorDifference difference;
  const T* a = before.const_data_ptr<T>();
  const T* b = after.const_data_ptr<T>();
  for (int64_t i = 0; i < before.numel(); ++i) {
    const double ulps = UlpsBetween(a[i], b[i]);
    const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (std::isfinite(x)) difference.magnitude = std::max(difference.magnitude, std::abs(x));
    if (ulps == 0.0) continue;
    ++difference.elements;
    if (std::abs(x - y) > difference.max_abs) difference.max_abs = std::abs(x - y);
    if (ulps <= difference.max_ulps) continue;
    difference.max_ulps = ulps;
    difference.where = i;
    difference.before = x;
    difference.after = y;
  }
  return difference;
}

}  // namespace

bool HasOrder(at::ScalarType type) {
  return c10::isIntegralType(type, /*includeBool=*/true) || c10::isComplexType(type) ||
         type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16 ||
         type == at::kFloat8_e4m3fn || type == at::kFloat8_e5m2;
}

TensorDifference Compare(const Tensor& before, const Tensor& after) {
  const auto plain = [](const Tensor& tensor) {
    return (tensor.is_complex() ? at::view_as_real(tensor.resolve_conj()) : tensor).contiguous();
  };
  const Tensor a = plain(before), b = plain(after);
  TensorDifference difference;
  AT_DISPATCH_V2(a.scalar_type(), "Compare",
                 AT_WRAP([&] { difference = CompareElements<scalar_t>(a, b); }),
                 AT_EXPAND(AT_ALL_TYPES), AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kBool,
                 at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2);
  return difference;
}

bool IsWithin(const TensorDifference& difference, const ValueTolerance& tolerance) {
  if (difference.max_ulps <= tolerance.ulps) return true;
  // A NaN on one side is infinitely far away.
  return std::isfinite(difference.max_ulps) &&
         difference.max_abs <= tolerance.relative * difference.magnitude;
}

}  // namespace strata
