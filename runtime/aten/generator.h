#pragma once
#include <cstdint>
#include <optional>

#include <ATen/core/Generator.h>

namespace strata {

/// Ranks that are threads of one process draw the same random numbers: the calling thread draws
/// them from a generator of its own from here on, beginning with the operators that it binds next.
void UseOwnGenerator();

/// That of the calling thread; none: it draws from ATen's.
const std::optional<at::Generator>& OwnGenerator();

/// Seeds the generator that the calling thread draws from.
void SeedGenerator(uint64_t seed);

}  // namespace strata
