#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"

namespace strata::prove {

/// What small numbers have to satisfy to take the place of the sizes of a program. Equal sizes stay
/// equal and different sizes different.
class SizeConstraints {
 public:
  void Add(int64_t size) { sizes_.insert(size); }
  /// The number is a literal of the program: it takes the place of no size.
  void Avoid(int64_t number) { avoided_.insert(number); }
  /// The size cannot be replaced.
  void Keep(int64_t size);
  /// The products are equal. REQUIRES: of the sizes themselves they are.
  void AddProduct(std::span<const int64_t> left, std::span<const int64_t> right);
  /// `total` is the sum of `parts`.
  void AddSum(int64_t total, std::span<const int64_t> parts);
  /// `divisor` divides `size`.
  void AddDivisor(int64_t divisor, int64_t size) { divisors_.emplace(divisor, size); }

  bool Has(int64_t size) const { return sizes_.contains(size); }
  const std::set<int64_t>& kept() const { return kept_; }
  /// Small numbers by size. Errors: none satisfy all.
  Result<std::map<int64_t, int64_t>> Solve() const;

 private:
  class Solver;
  /// A product of powers, by base.
  using Powers = std::map<int64_t, int64_t>;

  std::set<int64_t> sizes_, kept_, avoided_;
  std::set<Powers> products_;  // each is 1
  std::map<int64_t, std::set<std::vector<int64_t>>> sums_;
  std::set<std::pair<int64_t, int64_t>> divisors_;
};

}  // namespace strata::prove
