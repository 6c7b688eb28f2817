#include "bench/diff_eval/scores/rand_index.h"

#include <map>
#include <utility>

namespace strata::bench {

double AdjustedRandIndex(std::span<const int32_t> a, std::span<const int32_t> b) {
  const auto pairs = [](double n) { return n * (n - 1) / 2; };
  std::map<std::pair<int32_t, int32_t>, int> both;
  std::map<int32_t, int> of_a, of_b;
  for (size_t i = 0; i < a.size(); ++i) {
    ++both[{a[i], b[i]}];
    ++of_a[a[i]];
    ++of_b[b[i]];
  }
  double together = 0, in_a = 0, in_b = 0;
  for (const auto& [unused, count] : both)
    together += pairs(count);
  for (const auto& [unused, count] : of_a)
    in_a += pairs(count);
  for (const auto& [unused, count] : of_b)
    in_b += pairs(count);
  const double all = pairs(static_cast<double>(a.size()));
  if (all == 0) return 1;
  const double expected = in_a * in_b / all, most = (in_a + in_b) / 2;
  return most == expected ? 1 : (together - expected) / (most - expected);
}

}  // namespace strata::bench
