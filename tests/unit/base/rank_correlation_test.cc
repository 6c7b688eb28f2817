#include "base/rank_correlation.h"

#include <vector>

#include <doctest/doctest.h>

using namespace strata;

namespace {

double Of(const std::vector<double>& x, const std::vector<double>& y) {
  return RankCorrelation(x, y);
}

}  // namespace

TEST_CASE("series of the same order correlate fully, however far their values lie apart") {
  CHECK_EQ(Of({1, 2, 3, 4}, {10, 200, 201, 9000}), doctest::Approx(1));
  CHECK_EQ(Of({1, 2, 3, 4}, {4, 3, 2, 1}), doctest::Approx(-1));
}

TEST_CASE("a swap of neighbours costs 6 · 2 / n (n² − 1)") {
  CHECK_EQ(Of({1, 2, 3, 4, 5}, {1, 3, 2, 4, 5}), doctest::Approx(1 - 12.0 / 120));
}

TEST_CASE("equal values have the mean of their ranks") {
  CHECK_EQ(Of({1, 1, 2}, {1, 2, 3}), doctest::Approx(0.8660254));
}

TEST_CASE("a series without an order correlates with none") {
  CHECK_EQ(Of({7, 7, 7}, {1, 2, 3}), 0);
  CHECK_EQ(Of({}, {}), 0);
  CHECK_EQ(Of({1}, {1}), 0);
}
