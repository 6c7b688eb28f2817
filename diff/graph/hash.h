#pragma once
#include <cstddef>
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

/// A hash of bytes, one by one.
class TextHash {
 public:
  constexpr void Add(char c) {
    hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
    ++size_;
  }
  constexpr uint64_t value() const { return Spread(hash_ ^ size_); }

 private:
  uint64_t hash_ = 0xCBF29CE484222325ull;
  size_t size_ = 0;
};

/// Of bytes, the same on all machines. For features of nodes, not for storage.
constexpr uint64_t HashText(std::string_view text) {
  TextHash hash;
  for (char c : text)
    hash.Add(c);
  return hash.value();
}

}  // namespace strata
