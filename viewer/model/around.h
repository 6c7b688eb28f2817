#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace strata::viewer {

/// The index `n` places after `at` in a list of `size`, around its end; from before its begin when
/// `at` is not in it. REQUIRES: size > 0.
inline size_t Around(size_t size, std::ptrdiff_t at, int n) {
  const auto count = static_cast<std::ptrdiff_t>(size);
  std::ptrdiff_t next = at < 0 ? (n > 0 ? n - 1 : n) : at + n;
  next %= count;
  return static_cast<size_t>(next < 0 ? next + count : next);
}

/// -1: the list does not have it.
template <class T>
std::ptrdiff_t IndexOf(const std::vector<T>& list, const T& item) {
  const auto found = std::ranges::find(list, item);
  return found == list.end() ? -1 : found - list.begin();
}

}  // namespace strata::viewer
