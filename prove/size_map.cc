#include "prove/size_map.h"

#include <optional>

namespace strata::prove {
namespace {

/// Sizes up to this stay as they are: 1 is broadcast, and 2 may be the parts of a complex number.
constexpr int64_t kSmallest = 4;
constexpr int64_t kLargest = 64;    // number that is tried for a size
constexpr int64_t kAttempts = 1e5;  // assignments that are tried

}  // namespace

void SizeConstraints::Keep(int64_t size) {
  sizes_.insert(size);
  kept_.insert(size);
}

void SizeConstraints::AddProduct(std::span<const int64_t> left, std::span<const int64_t> right) {
  Powers powers;
  for (const int64_t size : left)
    ++powers[size];
  for (const int64_t size : right)
    --powers[size];
  std::erase_if(powers, [](const auto& power) { return power.second == 0; });
  for (const auto& [size, exponent] : powers)
    sizes_.insert(size);
  if (!powers.empty()) products_.insert(std::move(powers));
}

void SizeConstraints::AddSum(int64_t total, std::span<const int64_t> parts) {
  if (parts.size() < 2) return;
  sizes_.insert(total);
  sizes_.insert(parts.begin(), parts.end());
  sums_[total].emplace(parts.begin(), parts.end());
}

/// Eliminates products: each size becomes a product of powers of free sizes. Then assigns numbers
/// to the free sizes, the smallest that satisfy everything, by depth-first search.
class SizeConstraints::Solver {
 public:
  explicit Solver(const SizeConstraints& constraints) : constraints_(constraints) {}

  Result<std::map<int64_t, int64_t>> Run() {
    for (const int64_t size : constraints_.sizes_) {
      if (size <= kSmallest || constraints_.kept_.contains(size)) assigned_[size] = size;
    }
    for (const Powers& product : constraints_.products_)
      Eliminate(product);
    for (const int64_t size : constraints_.sizes_) {
      const bool is_sum = constraints_.sums_.contains(size);
      if (!assigned_.contains(size) && !powers_.contains(size) && !is_sum) free_.push_back(size);
    }
    if (!Assign(0)) return Error(ErrorCode::kUnsupported, "no small sizes are legal");
    return *Values();
  }

 private:
  Powers Substituted(const Powers& product) const {
    Powers result;
    for (const auto& [size, exponent] : product) {
      const auto found = powers_.find(size);
      if (found == powers_.end()) {
        result[size] += exponent;
      } else {
        for (const auto& [base, power] : found->second)
          result[base] += exponent * power;
      }
    }
    std::erase_if(result, [](const auto& power) { return power.second == 0; });
    return result;
  }

  /// The largest size of the product is what the others make it.
  void Eliminate(const Powers& product) {
    const Powers rest = Substituted(product);
    for (auto it = rest.rbegin(); it != rest.rend(); ++it) {
      const auto [size, exponent] = *it;
      if (assigned_.contains(size) || (exponent != 1 && exponent != -1)) continue;
      Powers others;
      for (const auto& [other, power] : rest)
        if (other != size) others[other] = -power * exponent;
      powers_[size] = others;
      for (auto& [name, powers] : powers_)
        powers = Substituted(powers);
      return;
    }
  }

  /// None: a size that it reads has none yet. -1: not a whole number.
  std::optional<int64_t> ValueOf(int64_t size, int depth = 0) const {
    if (const auto found = assigned_.find(size); found != assigned_.end()) return found->second;
    if (depth > 8) return std::nullopt;
    if (const auto found = powers_.find(size); found != powers_.end()) {
      int64_t above = 1, below = 1;
      for (const auto& [base, exponent] : found->second) {
        const std::optional<int64_t> value = ValueOf(base, depth + 1);
        if (!value) return std::nullopt;
        for (int64_t i = 0; i < exponent; ++i)
          if (__builtin_mul_overflow(above, *value, &above)) return -1;
        for (int64_t i = 0; i > exponent; --i)
          if (__builtin_mul_overflow(below, *value, &below)) return -1;
      }
      return below == 0 || above % below != 0 ? -1 : above / below;
    }
    const auto found = constraints_.sums_.find(size);
    return found == constraints_.sums_.end() ? std::nullopt : Sum(*found->second.begin(), depth);
  }

  std::optional<int64_t> Sum(const std::vector<int64_t>& parts, int depth) const {
    int64_t sum = 0;
    for (const int64_t part : parts) {
      const std::optional<int64_t> value = ValueOf(part, depth + 1);
      if (!value) return std::nullopt;
      sum += *value;
    }
    return sum;
  }

  /// All numbers that are known; none: they break a constraint.
  std::optional<std::map<int64_t, int64_t>> Values() const {
    std::map<int64_t, int64_t> values;
    std::set<int64_t> taken;
    for (const int64_t size : constraints_.sizes_) {
      const std::optional<int64_t> value = ValueOf(size);
      if (!value) continue;
      if (*value < 0 || !taken.insert(*value).second) return std::nullopt;
      if (*value != size && constraints_.avoided_.contains(*value)) return std::nullopt;
      values[size] = *value;
    }
    for (const auto& [divisor, size] : constraints_.divisors_) {
      const auto a = values.find(divisor), b = values.find(size);
      if (a != values.end() && b != values.end() && a->second > 0 && b->second % a->second != 0)
        return std::nullopt;
    }
    for (const auto& [total, sums] : constraints_.sums_) {
      for (const std::vector<int64_t>& parts : sums) {
        const std::optional<int64_t> sum = Sum(parts, 0);
        if (sum && values.contains(total) && *sum != values[total]) return std::nullopt;
      }
    }
    return values;
  }

  bool Assign(size_t index) {
    if (++attempts_ > kAttempts) return false;
    const auto values = Values();
    if (!values) return false;
    if (index == free_.size()) return values->size() == constraints_.sizes_.size();
    const int64_t size = free_[index];
    for (int64_t number = kSmallest - 1; number <= kLargest && number <= size; ++number) {
      assigned_[size] = number;
      if (Assign(index + 1)) return true;
    }
    assigned_.erase(size);
    return false;
  }

  const SizeConstraints& constraints_;
  std::map<int64_t, Powers> powers_;     // sizes that others make
  std::map<int64_t, int64_t> assigned_;  // numbers of sizes that are kept or free
  std::vector<int64_t> free_;
  int64_t attempts_ = 0;
};

Result<std::map<int64_t, int64_t>> SizeConstraints::Solve() const {
  return Solver(*this).Run();
}

}  // namespace strata::prove
