#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/result.h"
#include "runtime/config/reader.h"

namespace strata {

// What the checks of a configuration's values have in common.

/// Sizes are below 2^31: products of two are exact in int64, of more in double.
inline constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

/// `impossible value for 'n_heads': c.toml:5: <advice>`.
template <class... Args>
Error Impossible(const ConfigReader& reader, std::string_view key,
                 fmt::format_string<Args...> advice, Args&&... args) {
  return Error("impossible value for '{}': {}: {}", reader.NameOf(key), reader.Where(key),
               fmt::format(advice, std::forward<Args>(args)...));
}

inline Status CheckRange(const ConfigReader& reader, std::string_view key, int64_t value,
                         int64_t low, int64_t high) {
  if (value >= low && value <= high) return Ok();
  return Impossible(reader, key, "{} must be from {} to {}", value, low, high);
}

inline Status CheckSize(const ConfigReader& reader, std::string_view key, int64_t size) {
  return CheckRange(reader, key, size, 1, kMaxSize);
}

inline Status CheckPositive(const ConfigReader& reader, std::string_view key, double value) {
  if (value > 0.0) return Ok();
  return Impossible(reader, key, "{} must be more than 0", value);
}

}  // namespace strata
