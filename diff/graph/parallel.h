#pragma once
#include <cstddef>
#include <thread>

namespace strata {

/// Below this many nodes a thread costs more than it saves.
inline constexpr size_t kWorthAThread = 20'000;

/// Calls `first` and `second`, at the same time if there is much to do: `size` nodes. The same work
/// for both sides of a diff, mostly.
///
/// REQUIRES: neither reads what the other writes.
template <class First, class Second>
void AtOnce(size_t size, First&& first, Second&& second) {
  if (size < kWorthAThread) {
    first();
    second();
    return;
  }
  const std::jthread other(second);
  first();
}

}  // namespace strata
