#include "prove/sizes/size_system.h"

#include <algorithm>
#include <ranges>

namespace strata::prove {
namespace {

constexpr int64_t kFewestRanks = 3;  // of an axis that becomes smaller

}  // namespace

SizeSystem::SizeSystem(const SizeConstraints& constraints, const SharedNumbers& shared,
                       bool frees_parts)
    : c_(constraints), shared_(shared), frees_parts_(frees_parts) {
  FindRoots();
  AddConstraints();
  values_.resize(numbers_.size());
  FindDependents();
  AddChecks();
  std::vector<RootId> all;
  for (const RootId size : Ids<RootId>(numbers_.size()))
    all.push_back(size);
  is_legal_ = Learn(all);
}

std::vector<RootId> SizeSystem::Free() const {
  std::vector<RootId> free;
  for (const RootId root : Ids<RootId>(numbers_.size()))
    if (!IsMade(root)) free.push_back(root);
  return free;
}

bool SizeSystem::IsAxis(RootId size) const {
  return std::ranges::find(limited_, size) != limited_.end();
}

std::vector<RootId> SizeSystem::RootsOf(const std::vector<SizeId>& sizes) const {
  std::vector<RootId> roots;
  for (const SizeId size : sizes)
    roots.push_back(RootOf(size));
  return roots;
}

void SizeSystem::FindRoots() {
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

void SizeSystem::AddConstraints() {
  limited_ = RootsOf(c_.limited_);
  for (const SizeId size : Ids<SizeId>(c_.numbers_.size())) {
    const int64_t smallest = c_.counts_ranks_[c_.Root(size)] ? kFewestRanks : kSmallest;
    if (c_.numbers_[size] <= smallest || c_.IsKept(size))
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
  for (const RootId size : RootsOf(c_.not_larger_))
    not_larger_.insert(size);
  std::ranges::sort(checked_);
  checked_.erase(std::ranges::unique(checked_).begin(), checked_.end());
}

bool SizeSystem::IsMade(RootId size) const {
  return assigned_[size] || powers_[size] || !sums_[size].empty() || differences_[size];
}

int64_t SizeSystem::Weight(RootId size) const {
  int64_t weight = 0;
  for (const std::optional<Powers>& powers : powers_) {
    if (!powers) continue;
    const auto found = powers->find(size);
    if (found != powers->end()) weight += found->second;
  }
  return weight;
}

void SizeSystem::Subtract(RootId total, const std::vector<RootId>& parts) {
  if (!assigned_[total] && !powers_[total] && !differences_[total]) return;
  for (size_t i = parts.size(); i-- > 0;) {
    std::vector<RootId> others = parts;
    others[i] = total;
    if (DependsOn(others, parts[i])) continue;
    if (IsMade(parts[i]) && !FreePart(parts[i], others)) continue;
    others.erase(others.begin() + static_cast<int64_t>(i));
    differences_[parts[i]] = {total, std::move(others)};
    return;
  }
}

bool SizeSystem::FreePart(RootId part, const std::vector<RootId>& others) {
  if (!frees_parts_ || !powers_[part] || !sums_[part].empty()) return false;
  for (const auto& [base, exponent] : *powers_[part] | std::views::reverse) {
    if (IsMade(base) || IsAxis(base) || exponent != 1 || DependsOn(others, base)) continue;
    Powers inverse = {{part, 1}};
    for (const auto& [other, power] : *powers_[part])
      if (other != base) inverse[other] -= power;
    powers_[part] = std::nullopt;
    SetPowers(base, std::move(inverse));
    return true;
  }
  return false;
}

bool SizeSystem::DependsOn(const std::vector<RootId>& sizes, RootId base) const {
  return std::ranges::any_of(
      sizes, [&](RootId size) { return size == base || DependsOn(MakersOf(size), base); });
}

SizeSystem::Powers SizeSystem::Substituted(const Powers& product) const {
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

void SizeSystem::Eliminate(const Powers& product) {
  const Powers rest = Substituted(product);
  if (rest.empty()) return;
  std::optional<RootId> best;
  for (const auto& [size, exponent] : rest) {
    const bool can_be_made = !assigned_[size] && (exponent == 1 || exponent == -1);
    const auto rank = [&](RootId made) { return std::pair(!IsAxis(made), numbers_[made]); };
    if (can_be_made && (!best || rank(size) > rank(*best))) best = size;
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

void SizeSystem::SetPowers(RootId size, Powers powers) {
  powers_[size] = std::move(powers);
  for (const RootId other : Ids<RootId>(numbers_.size()))
    if (powers_[other]) powers_[other] = Substituted(*powers_[other]);
  for (Powers& checked : checked_)
    checked = Substituted(checked);
}

std::vector<RootId> SizeSystem::MakersOf(RootId size) const {
  if (assigned_[size]) return {};
  std::vector<RootId> makers;
  if (powers_[size]) {
    for (const auto& [maker, exponent] : *powers_[size])
      makers.push_back(maker);
  } else if (!sums_[size].empty()) {
    makers = *sums_[size].begin();
  } else if (differences_[size]) {
    makers = differences_[size]->second;
    makers.push_back(differences_[size]->first);
  }
  return makers;
}

void SizeSystem::FindDependents() {
  dependents_.resize(numbers_.size());
  for (const RootId size : Ids<RootId>(numbers_.size())) {
    std::set<RootId> bases;
    std::vector<RootId> work = {size};
    while (!work.empty()) {
      const RootId base = work.back();
      work.pop_back();
      if (!bases.insert(base).second) continue;
      for (const RootId maker : MakersOf(base))
        work.push_back(maker);
    }
    for (const RootId base : bases)
      dependents_[base].push_back(size);
  }
}

void SizeSystem::AddCheck(const std::vector<RootId>& sizes, std::function<bool()> check) {
  for (const RootId size : std::set<RootId>(sizes.begin(), sizes.end()))
    checks_of_[size].push_back(checks_.size());
  checks_.push_back(std::move(check));
}

void SizeSystem::AddChecks() {
  checks_of_.resize(numbers_.size());
  for (const auto& [divisor, size] : divisors_)
    AddCheck({divisor, size}, [this, divisor, size] {
      const auto a = values_[divisor], b = values_[size];
      return !a || !b || *a <= 0 || *b % *a == 0;
    });
  for (const auto& [less, size] : less_)
    AddCheck({less, size}, [this, less, size] {
      return !values_[less] || !values_[size] || *values_[less] < *values_[size];
    });
  for (const RootId size : not_larger_)
    AddCheck({size}, [this, size] { return !values_[size] || *values_[size] <= numbers_[size]; });
  AddCheck(limited_, [this] {
    int64_t product = 1;
    for (const RootId size : limited_)
      product *= values_[size].value_or(1);
    return product <= c_.limit_;
  });
  for (const Powers& powers : checked_) {
    std::vector<RootId> sizes;
    for (const auto& [size, exponent] : powers)
      sizes.push_back(size);
    AddCheck(sizes, [this, &powers] { return ValueOf(powers, 0).value_or(1) == 1; });
  }
  for (const RootId total : Ids<RootId>(numbers_.size())) {
    for (const std::vector<RootId>& parts : sums_[total]) {
      std::vector<RootId> sizes = parts;
      sizes.push_back(total);
      AddCheck(sizes, [this, total, &parts] {
        const auto sum = Sum(parts, 0);
        return !sum || !values_[total] || *sum == *values_[total];
      });
    }
  }
}

bool SizeSystem::Assign(RootId size, int64_t number) {
  assigned_[size] = number;
  if (Learn(dependents_[size])) return true;
  Forget(size);
  return false;
}

void SizeSystem::Forget(RootId size) {
  assigned_[size] = std::nullopt;
  for (; known_.size() > marks_.back(); known_.pop_back()) {
    std::map<int64_t, int64_t>& taken = taken_[*values_[known_.back()]];
    const auto number = taken.find(numbers_[known_.back()]);
    if (--number->second == 0) taken.erase(number);
    values_[known_.back()] = std::nullopt;
  }
  marks_.pop_back();
}

bool SizeSystem::Learn(const std::vector<RootId>& sizes) {
  const size_t first = known_.size();
  marks_.push_back(first);
  for (const RootId size : sizes)
    ValueOf(size);
  bool are_legal = true;
  for (size_t i = first; i < known_.size(); ++i) {
    const int64_t value = *values_[known_[i]], number = numbers_[known_[i]];
    const bool may_take = Take(value, number);
    const bool is_number = value > 0 || (value == 0 && number == 0);
    const bool is_avoided = value != number && c_.avoided_.contains(value);
    are_legal =
        are_legal && is_number && !is_avoided && may_take &&
        std::ranges::all_of(checks_of_[known_[i]], [&](size_t check) { return checks_[check](); });
  }
  return are_legal;
}

bool SizeSystem::Take(int64_t small, int64_t number) {
  std::map<int64_t, int64_t>& taken = taken_[small];
  if (++taken[number] > 1 || taken.size() == 1) return true;
  return taken.size() <= shared_.most && std::ranges::all_of(taken, [&](const auto& entry) {
           return !shared_.apart.contains(std::minmax(entry.first, number));
         });
}

std::optional<int64_t> SizeSystem::ValueOf(RootId size, int depth) {
  if (values_[size]) return values_[size];
  constexpr int kDeepest = 16;
  if (depth > kDeepest) return std::nullopt;
  std::optional<int64_t> value = assigned_[size];
  if (!value) value = Made(size, depth + 1);
  if (value && !values_[size]) {
    values_[size] = value;
    known_.push_back(size);
  }
  return value;
}

std::optional<int64_t> SizeSystem::Made(RootId size, int depth) {
  if (powers_[size]) return ValueOf(*powers_[size], depth);
  if (!sums_[size].empty()) return Sum(*sums_[size].begin(), depth);
  if (!differences_[size]) return std::nullopt;
  const auto total = ValueOf(differences_[size]->first, depth);
  const auto others = Sum(differences_[size]->second, depth);
  return total && others ? std::optional(*total - *others) : std::nullopt;
}

std::optional<int64_t> SizeSystem::ValueOf(const Powers& powers, int depth) {
  int64_t above = 1, below = 1;
  for (const auto& [base, exponent] : powers) {
    const std::optional<int64_t> value = ValueOf(base, depth);
    if (!value) return std::nullopt;
    for (int64_t i = 0; i < exponent; ++i)
      if (__builtin_mul_overflow(above, *value, &above)) return -1;
    for (int64_t i = 0; i > exponent; --i)
      if (__builtin_mul_overflow(below, *value, &below)) return -1;
  }
  return below == 0 || above % below != 0 ? -1 : above / below;
}

std::optional<int64_t> SizeSystem::Sum(const std::vector<RootId>& parts, int depth) {
  int64_t sum = 0;
  for (const RootId part : parts) {
    const std::optional<int64_t> value = ValueOf(part, depth);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum;
}

}  // namespace strata::prove
