#pragma once
#include <cstdint>
#include <optional>

namespace strata {

// Integer arithmetic with Python's rounding; no value where the result does not fit or is
// undefined.

inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// Rounds towards minus infinity, as Python does.
inline std::optional<int64_t> CheckedFloorDiv(int64_t a, int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return std::nullopt;
  const int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

inline std::optional<int64_t> CheckedMod(int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return (rest != 0 && (rest < 0) != (b < 0)) ? rest + b : rest;
}

inline std::optional<int64_t> CheckedPow(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  int64_t power = 1;
  while (exponent > 0) {
    if (exponent & 1) {
      const std::optional<int64_t> next = CheckedMul(power, base);
      if (!next) return std::nullopt;
      power = *next;
    }
    exponent >>= 1;
    if (exponent == 0) break;
    const std::optional<int64_t> squared = CheckedMul(base, base);
    if (!squared) return std::nullopt;
    base = *squared;
  }
  return power;
}

}  // namespace strata
