#pragma once
#include <cstdint>

namespace strata {

/// splitmix64's finalizer: every input bit reaches every output bit. Steele, Lea, Flood, "Fast
/// splittable pseudorandom number generators", 2014.
constexpr uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// Random bits by place: element `index` of the stream `key`, whoever asks for it and when.
constexpr uint64_t RandomBits(uint64_t key, uint64_t index) {
  return Mix(key ^ Mix(index));
}

}  // namespace strata
