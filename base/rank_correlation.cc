#include "base/rank_correlation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace strata {
namespace {

std::vector<double> RanksOf(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]])
      ++end;
    for (size_t i = begin; i < end; ++i)
      ranks[order[i]] = static_cast<double>(begin + end - 1) / 2;
    begin = end;
  }
  return ranks;
}

}  // namespace

double RankCorrelation(std::span<const double> x, std::span<const double> y) {
  const std::vector<double> a = RanksOf(x), b = RanksOf(y);
  const double mean = static_cast<double>(a.size() - 1) / 2;
  double both = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean) * (b[i] - mean);
    of_a += (a[i] - mean) * (a[i] - mean);
    of_b += (b[i] - mean) * (b[i] - mean);
  }
  return of_a == 0 || of_b == 0 ? 0 : both / std::sqrt(of_a * of_b);
}

}  // namespace strata
