#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ir/dim.h"

namespace strata {

/// Finds expressions for numbers that a program used when its sizes were different ones: the same
/// number of the program at several sample points, and the sizes at these points.
///
/// Tried in this order, each exact at every point: a constant, c·m, a·m + b, c·s·m, a·m + b·n,
/// where s is a size, and m and n are products of up to three sizes, or a size that depends on
/// data. The more points there are beyond those that fix the coefficients (two), the less an
/// expression fits by chance.
class SizeFit {
 public:
  explicit SizeFit(DimTable& dims) : dims_(dims) {}

  /// `value` stands for the size in expressions: a symbol, or the number that it has for good.
  /// REQUIRES: as many samples as every other size, at least 3; called before the first `Fit`.
  void AddSize(DimId value, std::vector<int64_t> samples);
  /// A data-dependent size, or a sum of such.
  void AddUnbacked(DimId size, std::vector<int64_t> samples);

  /// The expression of a number that was `numbers[i]` at sample i; none: no such expression.
  std::optional<DimId> Fit(std::span<const int64_t> numbers);

 private:
  struct Term {
    DimId value;
    std::vector<int64_t> samples;
  };
  using Direction = std::vector<int64_t>;

  void MakeProducts();
  void Index(const Term& term, size_t index);
  std::optional<DimId> FitMultiple(std::span<const int64_t> numbers);
  std::optional<DimId> FitAffine(std::span<const int64_t> numbers);
  std::optional<DimId> FitScaled(std::span<const int64_t> numbers);
  std::optional<DimId> FitPair(std::span<const int64_t> numbers);
  std::optional<DimId> FitPair(std::span<const int64_t> numbers, const Term& m, const Term& n);

  DimTable& dims_;
  std::vector<Term> sizes_;
  size_t num_products_ = 0;  // leading terms
  std::vector<Term> terms_;  // products of sizes, then what depends on data
  // Terms by their samples, and by the differences of those, up to a factor.
  std::map<Direction, size_t> by_samples_, by_differences_;
};

}  // namespace strata
