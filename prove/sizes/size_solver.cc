#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "prove/sizes/size_constraints.h"
#include "prove/sizes/size_system.h"

namespace strata::prove {
namespace {

constexpr int64_t kFirst = SizeSystem::kSmallest - 1;  // number that is tried for a size
constexpr int64_t kLargest = 64;                       // the last one
/// A small size may become larger, to stay different from others.
constexpr int64_t kLargestForAny = 16;
constexpr int64_t kAttempts = 2'000;  // assignments that are tried in a round
constexpr int kRounds = 10;
constexpr int64_t kAttemptsToDescend = 200;  // for a smaller number of one size
constexpr double kSmallestGain = 1e-9;       // less is a sum in another order

/// Assigns numbers to the free sizes of a system, the smallest that satisfy everything, by
/// depth-first search.
class SizeSearch {
 public:
  explicit SizeSearch(SizeSystem& system) : system_(system), free_(system.Free()) {
    dead_ends_.resize(system.num_roots(), 0);
    best_.resize(system.num_roots());
    for (const RootId size : Ids<RootId>(system.num_roots()))
      weights_.Add(1 + system.Weight(size));
    for (int64_t n = 0; n <= kLargest; ++n)
      logarithms_[static_cast<size_t>(n)] =
          std::log(static_cast<double>(std::max(n, kFirst)) / static_cast<double>(kFirst));
  }

  /// Finds numbers, then smaller ones. False: there are none.
  bool Run() {
    if (!system_.is_legal() || !FindSmaller(kRounds, kAttempts)) return false;
    Descend();
    return true;
  }

 private:
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

  /// Gives each size a smaller number, as long as others can follow. For axes of the mesh others
  /// get new numbers: every rank computes, and dimensions are multiples of the axes.
  void Descend() {
    const std::vector<RootId> sizes = free_;
    for (bool is_smaller = true; is_smaller;) {
      is_smaller = false;
      for (size_t i = 0; i < sizes.size() && !is_smaller; ++i) {
        fixed_ = sizes[i];
        for (int64_t n = kFirst; n < best_[fixed_] && !is_smaller; ++n) {
          With(fixed_, n, [&] {
            is_smaller = system_.IsAxis(fixed_) ? FindSmaller(kRounds, kAttempts)
                                                : FindSmaller(1, kAttemptsToDescend);
          });
        }
        fixed_ = {};
      }
    }
    for (const RootId size : free_)
      STRATA_CHECK(system_.Assign(size, *best_[size]), "{} for {}", *best_[size],
                   system_.number(size));
  }

  /// Calls `fn` while a size has a number, if that breaks no constraint and may cost less than what
  /// was found.
  template <class Fn>
  void With(RootId size, int64_t number, const Fn& fn) {
    const double before = cost_;
    cost_ += static_cast<double>(weights_[size]) * logarithms_[static_cast<size_t>(number)];
    if (cost_ < best_cost_ - kSmallestGain && system_.Assign(size, number)) {
      fn();
      system_.Forget(size);
    }
    cost_ = before;
  }

  /// Assigns numbers to the free sizes from `index` on, until all have one.
  void Assign(size_t index) {
    if (index == free_.size()) {
      const bool is_whole = std::ranges::all_of(
          system_.values(), [](const auto& value) { return value.has_value(); });
      if (is_whole) {
        best_cost_ = cost_;
        best_ = system_.assigned();
        attempts_ = 0;
      }
      return;
    }
    const RootId size = free_[index];
    if (size == fixed_) return Assign(index + 1);
    const auto attempt = [&](int64_t n) {
      --attempts_;
      With(size, n, [&] { Assign(index + 1); });
    };
    // What it has already, as long as it can stay, then others.
    const std::optional<int64_t> before = best_[size];
    if (before && attempts_ > 0) attempt(*before);
    const int64_t largest = std::clamp(system_.number(size), kLargestForAny, kLargest);
    for (int64_t n = kFirst; n <= largest && attempts_ > 0; ++n)
      if (n != before) attempt(n);
    if (attempts_ > 0) ++dead_ends_[size];
  }

  SizeSystem& system_;
  std::vector<RootId> free_;
  SizeSystem::Numbers best_;  // of the free sizes
  RootId fixed_;              // has its number already
  /// The logarithm of all numbers that the free ones make, less that of the smallest.
  double cost_ = 0;
  double best_cost_ = std::numeric_limits<double>::infinity();
  std::array<double, kLargest + 1> logarithms_;
  IdVector<RootId, int64_t> weights_, dead_ends_;  // how often no number was left
  int64_t attempts_ = 0;
};

}  // namespace

Result<IdVector<SizeId, int64_t>> SizeConstraints::Solve(const SharedNumbers& shared, Kinds kinds) {
  JoinFollowing(kinds);
  // Which sizes are free depends on what is eliminated; small numbers may be legal in one way only.
  for (const bool frees_parts : {true, false}) {
    SizeSystem system(*this, shared, frees_parts);
    if (!SizeSearch(system).Run()) continue;
    const SizeSystem::Numbers& values = system.values();
    IdVector<SizeId, int64_t> numbers;
    for (const SizeId size : Ids<SizeId>(numbers_.size()))
      numbers.Add(*values[system.RootOf(size)]);
    return numbers;
  }
  return Error(ErrorCode::kUnsupported, "no small sizes are legal");
}

SizePairs SizeConstraints::Equal(const IdVector<SizeId, int64_t>& numbers) const {
  std::map<int64_t, std::set<int64_t>> by_small;
  for (const SizeId size : Ids<SizeId>(numbers_.size()))
    by_small[numbers[size]].insert(numbers_[size]);
  SizePairs equal;
  for (const auto& [small, olds] : by_small)
    for (auto a = olds.begin(); a != olds.end(); ++a)
      for (auto b = std::next(a); b != olds.end(); ++b)
        equal.emplace(*a, *b);
  return equal;
}

}  // namespace strata::prove
