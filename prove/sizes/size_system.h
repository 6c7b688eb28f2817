#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id.h"
#include "prove/sizes/size_constraints.h"

namespace strata::prove {

/// One of the sizes that are different.
using RootId = Id<struct RootTag>;

/// The constraints as equations of the sizes that are different. Eliminates products: each size
/// becomes a product of powers of free sizes, or a sum. What is assigned to the free sizes gives
/// all numbers.
class SizeSystem {
 public:
  using Numbers = IdVector<RootId, std::optional<int64_t>>;

  /// Sizes up to this stay as they are: 1 is broadcast, and 2 may be the parts of a complex number.
  static constexpr int64_t kSmallest = 4;

  /// `frees_parts`: whether a part of a sum that a product makes may make a factor of it instead.
  /// REQUIRES: `constraints` and `shared` outlive this.
  SizeSystem(const SizeConstraints& constraints, const SharedNumbers& shared, bool frees_parts);
  SizeSystem(const SizeSystem&) = delete;  // its checks read it
  SizeSystem& operator=(const SizeSystem&) = delete;

  /// In ascending order of their numbers.
  size_t num_roots() const { return numbers_.size(); }
  RootId RootOf(SizeId size) const { return root_of_[c_.Root(size)]; }
  /// That is replaced.
  int64_t number(RootId size) const { return numbers_[size]; }
  /// Sizes that no others make.
  std::vector<RootId> Free() const;
  /// How often the size is a factor of others: the more, the smaller it should be.
  int64_t Weight(RootId size) const;
  /// Whether it is an axis of the mesh.
  bool IsAxis(RootId size) const;

  /// Whether the numbers of sizes that are kept break no constraint.
  bool is_legal() const { return is_legal_; }
  /// Gives a free size that has none a number. False: that breaks a constraint, and the size has
  /// none.
  bool Assign(RootId size, int64_t number);
  /// Takes back the last Assign that gave a number, which was to `size`.
  void Forget(RootId size);
  const Numbers& assigned() const { return assigned_; }
  /// What the numbers that were given make.
  const Numbers& values() const { return values_; }

 private:
  /// A product of powers, by base.
  using Powers = std::map<RootId, int64_t>;

  std::vector<RootId> RootsOf(const std::vector<SizeId>& sizes) const;
  void FindRoots();
  void AddConstraints();
  /// Others make the size.
  bool IsMade(RootId size) const;
  /// If something else makes a sum, one of its parts that makes none of the others is what they
  /// leave: the largest, or that which a size makes that none of the others depends on.
  void Subtract(RootId total, const std::vector<RootId>& parts);
  /// Lets a part make a size that made it, the largest but axes. False: there is none, or others
  /// need it.
  bool FreePart(RootId part, const std::vector<RootId>& others);
  /// Whether one of the sizes is `base`, or is made of it.
  bool DependsOn(const std::vector<RootId>& sizes, RootId base) const;
  Powers Substituted(const Powers& product) const;
  /// The largest size of the product, if possible no axis, is what the others make it.
  void Eliminate(const Powers& product);
  void SetPowers(RootId size, Powers powers);
  /// What the size is made of.
  std::vector<RootId> MakersOf(RootId size) const;
  void FindDependents();
  void AddChecks();
  /// A constraint of sizes, which holds as long as not all of them are known.
  void AddCheck(const std::vector<RootId>& sizes, std::function<bool()> check);
  /// Finds those of the sizes that are known by now. Returns whether these break no constraint.
  bool Learn(const std::vector<RootId>& sizes);
  /// None: a size that it reads has none yet. -1: not a whole number.
  std::optional<int64_t> ValueOf(RootId size, int depth = 0);
  std::optional<int64_t> Made(RootId size, int depth);
  std::optional<int64_t> ValueOf(const Powers& powers, int depth);
  std::optional<int64_t> Sum(const std::vector<RootId>& parts, int depth);

  /// Notes that a small number takes the place of another. Returns whether it may.
  bool Take(int64_t small, int64_t number);

  const SizeConstraints& c_;
  const SharedNumbers& shared_;
  const bool frees_parts_;
  IdVector<SizeId, RootId> root_of_;                      // of roots
  IdVector<RootId, int64_t> numbers_;                     // that are replaced
  Numbers assigned_;                                      // of sizes that are kept or free
  IdVector<RootId, std::optional<Powers>> powers_;        // of sizes that others make
  IdVector<RootId, std::set<std::vector<RootId>>> sums_;  // parts in ascending order
  /// A total, and what is taken from it.
  IdVector<RootId, std::optional<std::pair<RootId, std::vector<RootId>>>> differences_;
  std::vector<Powers> checked_;  // products that have to be 1, of sizes that are not free
  std::set<std::pair<RootId, RootId>> divisors_, less_;
  std::set<RootId> not_larger_;
  std::vector<RootId> limited_;
  std::vector<std::function<bool()>> checks_;
  IdVector<RootId, std::vector<size_t>> checks_of_;   // in which a size is
  IdVector<RootId, std::vector<RootId>> dependents_;  // that a size makes, in ascending order
  bool is_legal_ = true;
  // What is known by now.
  Numbers values_;
  std::vector<RootId> known_;  // in the order in which they were found
  std::vector<size_t> marks_;  // how many were known before each Learn
  /// By the small number: those that it takes the place of, and how many sizes these are.
  std::unordered_map<int64_t, std::map<int64_t, int64_t>> taken_;
};

}  // namespace strata::prove
