#pragma once
#include <cstdint>
#include <string_view>

namespace strata {

/// Spreads the bits of `x` (the finalizer of SplitMix64).
constexpr uint64_t Spread(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// A hash of the sequence `a`, `b`; Mix(a, b) and Mix(b, a) differ.
constexpr uint64_t Mix(uint64_t a, uint64_t b) {
  return Spread(a * 0x9E3779B97F4A7C15ull + b + 0x2545F4914F6CDD1Dull);
}

/// Of bytes, the same on all machines. For features of nodes, not for storage.
constexpr uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return Spread(hash ^ text.size());
}

}  // namespace strata
