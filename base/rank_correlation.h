#pragma once
#include <span>

namespace strata {

/// Spearman's coefficient of two equally long series: the correlation of their ranks, equal values
/// with the mean of theirs. 1: both have the same order, -1: opposite orders, 0 also where a series
/// has no order.
double RankCorrelation(std::span<const double> x, std::span<const double> y);

}  // namespace strata
