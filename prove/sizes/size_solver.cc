#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

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
  }

  /// Finds numbers, then smaller ones. False: there are none.
  bool Run() {
    if (!FindSmaller(kRounds, kAttempts)) return false;
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
          system_.Assign(fixed_, n);
          is_smaller = system_.IsAxis(fixed_) ? FindSmaller(kRounds, kAttempts)
                                              : FindSmaller(1, kAttemptsToDescend);
        }
        system_.Assign(fixed_, std::nullopt);
        fixed_ = {};
      }
    }
    for (const RootId size : free_)
      system_.Assign(size, best_[size]);
  }

  /// Assigns numbers to the free sizes from `index` on, until all have one.
  void Assign(size_t index) {
    const auto values = system_.Values();
    if (!values) return;
    if (index == free_.size()) {
      if (std::ranges::all_of(*values, [](const auto& value) { return value.has_value(); })) {
        best_cost_ = Cost();
        best_ = system_.assigned();
        attempts_ = 0;
      }
      return;
    }
    const RootId size = free_[index];
    if (size == fixed_) return Assign(index + 1);
    const auto attempt = [&](int64_t n) {
      --attempts_;
      system_.Assign(size, n);
      if (Cost() < best_cost_ - kSmallestGain) Assign(index + 1);
    };
    // What it has already, as long as it can stay, then others.
    const std::optional<int64_t> before = best_[size];
    if (before && attempts_ > 0) attempt(*before);
    const int64_t largest = std::clamp(system_.number(size), kLargestForAny, kLargest);
    for (int64_t n = kFirst; n <= largest && attempts_ > 0; ++n)
      if (n != before) attempt(n);
    if (attempts_ > 0) ++dead_ends_[size];
    system_.Assign(size, std::nullopt);
  }

  /// The logarithm of all numbers that the free ones make; those that have none yet are small.
  double Cost() const {
    double cost = 0;
    for (const RootId size : free_)
      cost += static_cast<double>(weights_[size]) *
              std::log(static_cast<double>(system_.assigned(size).value_or(kFirst)));
    return cost;
  }

  SizeSystem& system_;
  std::vector<RootId> free_;
  SizeSystem::Numbers best_;  // of the free sizes
  RootId fixed_;              // has its number already
  double best_cost_ = std::numeric_limits<double>::infinity();
  IdVector<RootId, int64_t> weights_, dead_ends_;  // how often no number was left
  int64_t attempts_ = 0;
};

}  // namespace

Result<IdVector<SizeId, int64_t>> SizeConstraints::Solve() {
  while (JoinParts()) {
  }
  JoinAlike();
  while (JoinParts()) {
  }
  // Which sizes are free depends on what is eliminated; small numbers may be legal in one way only.
  for (const bool frees_parts : {true, false}) {
    SizeSystem system(*this, frees_parts);
    if (!SizeSearch(system).Run()) continue;
    const SizeSystem::Numbers values = *system.Values();
    IdVector<SizeId, int64_t> numbers;
    for (const SizeId size : Ids<SizeId>(numbers_.size()))
      numbers.Add(*values[system.RootOf(size)]);
    return numbers;
  }
  return Error(ErrorCode::kUnsupported, "no small sizes are legal");
}

}  // namespace strata::prove
