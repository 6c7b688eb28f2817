#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "prove/sizes/size_constraints.h"

namespace strata::prove {
namespace {

/// Sizes up to this stay as they are: 1 is broadcast, and 2 may be the parts of a complex number.
constexpr int64_t kSmallest = 4;
constexpr int64_t kLargest = 64;  // number that is tried for a size
/// A small size may become larger, to stay different from others.
constexpr int64_t kLargestForAny = 16;
constexpr int64_t kAttempts = 2'000;  // assignments that are tried in a round
constexpr int kRounds = 10;
constexpr int64_t kAttemptsToDescend = 200;  // for a smaller number of one size
constexpr double kSmallestGain = 1e-9;       // less is a sum in another order

/// One of the sizes that are different.
using RootId = Id<struct RootTag>;
/// A product of powers, by base.
using Powers = std::map<RootId, int64_t>;

}  // namespace

/// Eliminates products: each size becomes a product of powers of free sizes. Then assigns numbers
/// to the free sizes, the smallest that satisfy everything, by depth-first search.
class SizeSolver {
 public:
  /// `frees_parts`: whether a part of a sum that a product makes may make a factor of it instead.
  SizeSolver(const SizeConstraints& c, bool frees_parts) : c_(c), frees_parts_(frees_parts) {}

  Result<IdVector<SizeId, int64_t>> Run() {
    FindRoots();
    AddConstraints();
    for (const RootId root : Ids<RootId>(numbers_.size()))
      if (!IsMade(root)) free_.push_back(root);
    if (!Search()) return Error(ErrorCode::kUnsupported, "no small sizes are legal");
    const Numbers values = *Values();
    IdVector<SizeId, int64_t> numbers;
    for (const SizeId size : Ids<SizeId>(c_.numbers_.size()))
      numbers.Add(*values[RootOf(size)]);
    return numbers;
  }

 private:
  using Numbers = IdVector<RootId, std::optional<int64_t>>;

  RootId RootOf(SizeId size) const { return root_of_[c_.Root(size)]; }
  std::vector<RootId> RootsOf(const std::vector<SizeId>& sizes) const {
    std::vector<RootId> roots;
    for (const SizeId size : sizes)
      roots.push_back(RootOf(size));
    return roots;
  }

  /// In ascending order of their numbers.
  void FindRoots() {
    std::vector<SizeId> roots;
    for (const SizeId size : Ids<SizeId>(c_.numbers_.size()))
      if (c_.Root(size) == size) roots.push_back(size);
    std::ranges::stable_sort(roots, {}, [&](SizeId size) { return c_.numbers_[size]; });
    root_of_.resize(c_.numbers_.size());
    for (const SizeId size : roots)
      root_of_[size] = numbers_.Add(c_.numbers_[size]);
    assigned_.resize(numbers_.size());
    powers_.resize(numbers_.size());
    sums_.resize(numbers_.size());
    differences_.resize(numbers_.size());
  }

  void AddConstraints() {
    for (const SizeId size : Ids<SizeId>(c_.numbers_.size())) {
      if (c_.numbers_[size] <= kSmallest || c_.IsKept(size))
        assigned_[RootOf(size)] = c_.numbers_[size];
    }
    for (const auto& [total, parts] : c_.sums_) {
      std::vector<RootId> roots = RootsOf(parts);
      std::ranges::sort(roots);
      sums_[RootOf(total)].insert(std::move(roots));
    }
    std::set<Powers> products;
    for (const SizeConstraints::Product& product : c_.products_) {
      Powers powers;
      for (const RootId root : RootsOf(product.left))
        ++powers[root];
      for (const RootId root : RootsOf(product.right))
        --powers[root];
      products.insert(std::move(powers));
    }
    for (const Powers& product : products)
      Eliminate(product);
    for (const RootId total : Ids<RootId>(numbers_.size()))
      for (const std::vector<RootId>& parts : sums_[total])
        Subtract(total, parts);
    for (const auto& [divisor, size] : c_.divisors_)
      divisors_.emplace(RootOf(divisor), RootOf(size));
    for (const auto& [less, size] : c_.less_)
      less_.emplace(RootOf(less), RootOf(size));
    limited_ = RootsOf(c_.limited_);
    not_larger_ = RootsOf(c_.not_larger_);
  }

  /// Others make the size.
  bool IsMade(RootId size) const {
    return assigned_[size] || powers_[size] || !sums_[size].empty() || differences_[size];
  }

  /// How often the size is a factor of others: the more, the smaller it should be.
  int64_t Weight(RootId size) const {
    int64_t weight = 0;
    for (const std::optional<Powers>& powers : powers_) {
      if (!powers) continue;
      const auto found = powers->find(size);
      if (found != powers->end()) weight += found->second;
    }
    return weight;
  }

  /// If something else makes a sum, one of its parts is what the others leave: the largest, or that
  /// which a size makes that none of the others depends on.
  void Subtract(RootId total, const std::vector<RootId>& parts) {
    if (!assigned_[total] && !powers_[total] && !differences_[total]) return;
    for (size_t i = parts.size(); i-- > 0;) {
      std::vector<RootId> others = parts;
      others[i] = total;
      if (IsMade(parts[i]) && !FreePart(parts[i], others)) continue;
      others.erase(others.begin() + static_cast<int64_t>(i));
      differences_[parts[i]] = {total, std::move(others)};
      return;
    }
  }

  /// Lets a part make a size that made it. False: there is no such size, or others need it.
  bool FreePart(RootId part, const std::vector<RootId>& others) {
    if (!frees_parts_ || !powers_[part] || !sums_[part].empty()) return false;
    for (const auto& [base, exponent] : *powers_[part]) {
      const bool is_needed = std::ranges::any_of(others, [&](RootId other) {
        return other == base || (powers_[other] && powers_[other]->contains(base));
      });
      if (is_needed || IsMade(base) || exponent != 1) continue;
      Powers inverse = {{part, 1}};
      for (const auto& [other, power] : *powers_[part])
        if (other != base) inverse[other] -= power;
      powers_[part] = std::nullopt;
      SetPowers(base, std::move(inverse));
      return true;
    }
    return false;
  }

  Powers Substituted(const Powers& product) const {
    Powers result;
    for (const auto& [size, exponent] : product) {
      if (!powers_[size]) {
        result[size] += exponent;
      } else {
        for (const auto& [base, power] : *powers_[size])
          result[base] += exponent * power;
      }
    }
    std::erase_if(result, [](const auto& power) { return power.second == 0; });
    return result;
  }

  /// The largest size of the product is what the others make it.
  void Eliminate(const Powers& product) {
    const Powers rest = Substituted(product);
    if (rest.empty()) return;
    std::optional<RootId> best;
    for (const auto& [size, exponent] : rest) {
      const bool can_be_made = !assigned_[size] && (exponent == 1 || exponent == -1);
      if (can_be_made && (!best || numbers_[size] > numbers_[*best])) best = size;
    }
    if (!best) {
      checked_.push_back(rest);
      return;
    }
    const int64_t exponent = rest.at(*best);
    Powers others;
    for (const auto& [other, power] : rest)
      if (other != *best) others[other] = -power * exponent;
    SetPowers(*best, std::move(others));
  }

  void SetPowers(RootId size, Powers powers) {
    powers_[size] = std::move(powers);
    for (const RootId other : Ids<RootId>(numbers_.size()))
      if (powers_[other]) powers_[other] = Substituted(*powers_[other]);
    for (Powers& checked : checked_)
      checked = Substituted(checked);
  }

  /// None: a size that it reads has none yet. -1: not a whole number.
  std::optional<int64_t> ValueOf(RootId size, Numbers& known, int depth = 0) const {
    if (assigned_[size]) return assigned_[size];
    if (known[size]) return known[size];
    constexpr int kDeepest = 16;
    if (depth > kDeepest) return std::nullopt;
    std::optional<int64_t> value;
    if (powers_[size]) {
      value = ValueOf(*powers_[size], known, depth + 1);
    } else if (!sums_[size].empty()) {
      value = Sum(*sums_[size].begin(), known, depth + 1);
    } else if (differences_[size]) {
      value = ValueOf(differences_[size]->first, known, depth + 1);
      const auto others = Sum(differences_[size]->second, known, depth + 1);
      value = value && others ? std::optional(*value - *others) : std::nullopt;
    }
    known[size] = value;
    return value;
  }

  std::optional<int64_t> ValueOf(const Powers& powers, Numbers& known, int depth) const {
    int64_t above = 1, below = 1;
    for (const auto& [base, exponent] : powers) {
      const std::optional<int64_t> value = ValueOf(base, known, depth);
      if (!value) return std::nullopt;
      for (int64_t i = 0; i < exponent; ++i)
        if (__builtin_mul_overflow(above, *value, &above)) return -1;
      for (int64_t i = 0; i > exponent; --i)
        if (__builtin_mul_overflow(below, *value, &below)) return -1;
    }
    return below == 0 || above % below != 0 ? -1 : above / below;
  }

  std::optional<int64_t> Sum(const std::vector<RootId>& parts, Numbers& known, int depth) const {
    int64_t sum = 0;
    for (const RootId part : parts) {
      const std::optional<int64_t> value = ValueOf(part, known, depth);
      if (!value) return std::nullopt;
      sum += *value;
    }
    return sum;
  }

  /// All numbers that are known; none: they break a constraint.
  std::optional<Numbers> Values() const {
    Numbers values(numbers_.size());
    std::unordered_map<int64_t, int64_t> taken;  // the number that a small one takes the place of
    for (const RootId size : Ids<RootId>(numbers_.size())) {
      values[size] = ValueOf(size, values);
      const std::optional<int64_t>& value = values[size];
      if (!value) continue;
      const int64_t number = numbers_[size];
      const bool is_legal = *value > 0 || (*value == 0 && number == 0);
      if (!is_legal || taken.emplace(*value, number).first->second != number) return std::nullopt;
      if (*value != number && c_.avoided_.contains(*value)) return std::nullopt;
    }
    return AreLegal(values) ? std::optional(std::move(values)) : std::nullopt;
  }

  bool AreLegal(Numbers& values) const {
    for (const auto& [divisor, size] : divisors_) {
      const auto a = values[divisor], b = values[size];
      if (a && b && *a > 0 && *b % *a != 0) return false;
    }
    int64_t limited = 1;
    for (const RootId size : limited_)
      limited *= values[size].value_or(1);
    if (!limited_.empty() && limited > c_.limit_) return false;
    for (const RootId size : not_larger_)
      if (values[size] && *values[size] > numbers_[size]) return false;
    for (const auto& [less, size] : less_)
      if (values[less] && values[size] && *values[less] >= *values[size]) return false;
    for (const Powers& powers : checked_) {
      const auto value = ValueOf(powers, values, 0);
      if (value && *value != 1) return false;
    }
    for (const RootId total : Ids<RootId>(numbers_.size())) {
      for (const std::vector<RootId>& parts : sums_[total]) {
        const auto sum = Sum(parts, values, 0);
        if (sum && values[total] && *sum != *values[total]) return false;
      }
    }
    return true;
  }

  /// Finds numbers, then smaller ones.
  bool Search() {
    dead_ends_.resize(numbers_.size(), 0);
    best_.resize(numbers_.size());
    for (const RootId size : Ids<RootId>(numbers_.size()))
      weights_.Add(1 + Weight(size));
    if (!FindSmaller(kRounds, kAttempts)) return false;
    Descend();
    return true;
  }

  /// Finds numbers of a smaller cost. Where no number is left for a size, those that it depends on
  /// may come long before it: then the search begins again with such sizes first.
  bool FindSmaller(int rounds, int64_t attempts) {
    const double cost = best_cost_;
    for (int round = 0; round < rounds && best_cost_ >= cost; ++round) {
      std::ranges::stable_sort(free_, std::ranges::greater(), [&](RootId size) {
        return std::pair(dead_ends_[size], weights_[size]);
      });
      attempts_ = attempts;
      Assign(0);
      if (attempts_ > 0) break;  // all were tried
    }
    return best_cost_ < cost;
  }

  bool IsAxis(RootId size) const { return std::ranges::find(limited_, size) != limited_.end(); }

  /// Gives each size a smaller number, as long as others can follow. For axes of the mesh others
  /// get new numbers: every rank computes, and dimensions are multiples of the axes.
  void Descend() {
    const std::vector<RootId> sizes = free_;
    for (bool is_smaller = true; is_smaller;) {
      is_smaller = false;
      for (size_t i = 0; i < sizes.size() && !is_smaller; ++i) {
        fixed_ = sizes[i];
        for (int64_t n = kSmallest - 1; n < best_[fixed_] && !is_smaller; ++n) {
          assigned_[fixed_] = n;
          is_smaller =
              IsAxis(fixed_) ? FindSmaller(kRounds, kAttempts) : FindSmaller(1, kAttemptsToDescend);
        }
        assigned_[fixed_] = std::nullopt;
        fixed_ = {};
      }
    }
    for (const RootId size : free_)
      assigned_[size] = best_[size];
  }

  /// Assigns numbers to the free sizes from `index` on, until all have one.
  void Assign(size_t index) {
    const auto values = Values();
    if (!values) return;
    if (index == free_.size()) {
      if (std::ranges::all_of(*values, [](const auto& value) { return value.has_value(); })) {
        best_cost_ = Cost();
        best_ = assigned_;
        attempts_ = 0;
      }
      return;
    }
    const RootId size = free_[index];
    if (size == fixed_) return Assign(index + 1);
    const auto attempt = [&](int64_t n) {
      --attempts_;
      assigned_[size] = n;
      if (Cost() < best_cost_ - kSmallestGain) Assign(index + 1);
    };
    // What it has already, as long as it can stay, then others.
    const std::optional<int64_t> before = best_[size];
    if (before && attempts_ > 0) attempt(*before);
    const int64_t largest = std::clamp(numbers_[size], kLargestForAny, kLargest);
    for (int64_t n = kSmallest - 1; n <= largest && attempts_ > 0; ++n)
      if (n != before) attempt(n);
    if (attempts_ > 0) ++dead_ends_[size];
    assigned_[size] = std::nullopt;
  }

  /// The logarithm of all numbers that the free ones make; those that have none yet are small.
  double Cost() const {
    double cost = 0;
    for (const RootId size : free_)
      cost += static_cast<double>(weights_[size]) *
              std::log(static_cast<double>(assigned_[size].value_or(kSmallest - 1)));
    return cost;
  }

  const SizeConstraints& c_;
  const bool frees_parts_;
  IdVector<SizeId, RootId> root_of_;                      // of roots
  IdVector<RootId, int64_t> numbers_;                     // that are replaced
  IdVector<RootId, std::optional<int64_t>> assigned_;     // of sizes that are kept or free
  IdVector<RootId, std::optional<Powers>> powers_;        // of sizes that others make
  IdVector<RootId, std::set<std::vector<RootId>>> sums_;  // parts in ascending order
  /// A total, and what is taken from it.
  IdVector<RootId, std::optional<std::pair<RootId, std::vector<RootId>>>> differences_;
  std::vector<Powers> checked_;  // products that have to be 1, of sizes that are not free
  std::set<std::pair<RootId, RootId>> divisors_, less_;
  std::vector<RootId> limited_, not_larger_, free_;
  IdVector<RootId, std::optional<int64_t>> best_;  // as assigned_
  RootId fixed_;                                   // has its number already
  double best_cost_ = std::numeric_limits<double>::infinity();
  IdVector<RootId, int64_t> weights_, dead_ends_;  // how often no number was left
  int64_t attempts_ = 0;
};

Result<IdVector<SizeId, int64_t>> SizeConstraints::Solve() {
  while (JoinParts()) {
  }
  JoinAlike();
  while (JoinParts()) {
  }
  // Which sizes are free depends on what is eliminated; small numbers may be legal in one way only.
  auto numbers = SizeSolver(*this, /*frees_parts=*/true).Run();
  return numbers ? numbers : SizeSolver(*this, /*frees_parts=*/false).Run();
}

}  // namespace strata::prove
