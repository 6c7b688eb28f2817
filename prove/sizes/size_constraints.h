#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/result.h"

namespace strata::prove {

/// A size of a program that small numbers can take the place of: of a dimension, of a shard, of a
/// mesh axis, of an argument.
using SizeId = Id<struct SizeTag>;

/// Pairs of different sizes, the smaller one first.
using SizePairs = std::set<std::pair<int64_t, int64_t>>;

/// Which different sizes may become one number.
struct SharedNumbers {
  size_t most = 1;       ///< that may
  SizePairs apart = {};  ///< never both of these
};

/// Which sizes of one number are of one kind, and then one size.
enum class Kinds : uint8_t {
  kByPlace,     ///< those with the same places in equations of the same numbers
  kByEquation,  ///< those with the same places in equations of sizes of the same kinds
};

/// What the numbers have to satisfy that take the place of sizes. Sizes of one number may become
/// different numbers, unless they are joined; different ones become the same only as SharedNumbers
/// says.
class SizeConstraints {
 public:
  SizeId New(int64_t number);
  /// A size that only a run knows, which nothing takes the place of. Equal ones have equal keys.
  SizeId NewUnknown(int32_t key);
  /// Of an unknown size: one that no other size is.
  int64_t number(SizeId size) const { return numbers_[size]; }
  bool IsUnknown(SizeId size) const { return numbers_[size] >= kFirstUnknown; }
  /// The two are one size. REQUIRES: they are the same number.
  void Join(SizeId a, SizeId b);
  /// The size counts ranks. Numbers alone do not show that another size does: 8 groups of experts
  /// stay apart from 8 ranks that have the experts.
  void CountRanks(SizeId size) { counts_ranks_[Root(size)] = true; }
  /// All sizes of each number are one.
  void JoinEqual();
  /// All sizes that are this number are one.
  void JoinAll(int64_t number);
  /// The size cannot be replaced.
  void Keep(SizeId size) { kept_.insert(size); }
  /// Whether Keep was called for it, or for a size that is the same one.
  bool Stays(SizeId size) const;
  void KeepAll(int64_t number) { kept_numbers_.insert(number); }
  /// The number is a literal of the program: it takes the place of no size.
  void Avoid(int64_t number) { avoided_.insert(number); }
  /// The products are equal. Parts of one size in one order are the same parts wherever they are
  /// the same numbers, and so is the first part where the others differ. REQUIRES: of the numbers
  /// themselves the products are equal.
  void AddProduct(std::span<const SizeId> left, std::span<const SizeId> right);
  /// Ranks cut `whole` into `part`s, which have nothing to do with those of other ranks.
  void AddCut(SizeId whole, SizeId ranks, SizeId part);
  /// `total` is the sum of `parts`; nothing is added if of the numbers it is not.
  void AddSum(SizeId total, std::span<const SizeId> parts);
  /// `divisor` divides `size`.
  void AddDivisor(SizeId divisor, SizeId size) { divisors_.emplace(divisor, size); }
  void AddLess(SizeId less, SizeId size) { less_.emplace(less, size); }
  /// The size becomes no larger number.
  void DoNotEnlarge(SizeId size) { not_larger_.push_back(size); }
  /// The product of `sizes`, once they are small, is at most `limit`.
  void SetLimit(std::vector<SizeId> sizes, int64_t limit) {
    limited_ = std::move(sizes);
    limit_ = limit;
  }

  /// Numbers of sizes that stay.
  std::set<int64_t> Kept() const;
  /// Joins sizes that follow to be one, then finds small numbers. Errors: none satisfy all.
  Result<IdVector<SizeId, int64_t>> Solve(const SharedNumbers& shared = {},
                                          Kinds kinds = Kinds::kByPlace);
  /// Different sizes that have become one number.
  SizePairs Equal(const IdVector<SizeId, int64_t>& numbers) const;
  /// How many sizes are different. REQUIRES: Solve was called.
  size_t NumSizes() const;

 private:
  friend class SizeSystem;
  struct Product {
    std::vector<SizeId> left, right;
    bool is_cut = false;
  };

  static constexpr int64_t kFirstUnknown = int64_t{1} << 36;

  bool IsKept(SizeId size) const {
    return IsUnknown(size) || kept_.contains(size) || kept_numbers_.contains(numbers_[size]);
  }
  SizeId Root(SizeId size) const;
  std::vector<SizeId> Roots(std::span<const SizeId> sizes) const;
  std::vector<int64_t> Numbers(std::span<const SizeId> sizes) const;
  /// For each size its root if it counts ranks, else an invalid id.
  std::vector<SizeId> Ranks(std::span<const SizeId> sizes) const;
  /// Joins sizes that follow to be one. What ranks have one of each comes late: until then numbers
  /// show that it is a part of something, and it is not taken for ranks.
  void JoinFollowing(Kinds kinds);
  /// Joins what products and sums show to be one size. Returns whether something was joined.
  bool JoinParts();
  /// Left side, right side, whether they are products; else sums.
  using Equation = std::tuple<std::vector<SizeId>, std::vector<SizeId>, bool>;
  /// Of roots.
  std::set<Equation> Equations() const;
  /// Kinds of roots by number: sizes of a kind become several if they have other places in
  /// equations, or in those of other kinds.
  std::map<SizeId, size_t> Refined(const std::map<SizeId, size_t>& kind_of,
                                   const std::set<Equation>& equations) const;
  /// Joins sizes of one kind: of the thousand parameters of a model few are different to an
  /// optimizer. A size that counts ranks is of its own kind.
  void JoinAlike(Kinds kinds);

  IdVector<SizeId, int64_t> numbers_;
  mutable IdVector<SizeId, SizeId> parents_;  // union-find
  IdVector<SizeId, bool> counts_ranks_;       // of roots
  std::map<int64_t, std::vector<SizeId>> by_number_;
  std::set<SizeId> kept_;
  std::set<int64_t> kept_numbers_, joined_numbers_, avoided_;
  std::vector<Product> products_;
  std::vector<std::pair<SizeId, SizeId>> cut_to_one_;  // what ranks have one of each, and ranks
  std::vector<std::pair<SizeId, std::vector<SizeId>>> sums_;
  std::set<std::pair<SizeId, SizeId>> divisors_, less_;
  std::vector<SizeId> limited_, not_larger_;
  int64_t limit_ = 0;
};

}  // namespace strata::prove
