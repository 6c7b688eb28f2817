#include "prove/sizes/size_constraints.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/result.h"

namespace strata::prove {

SizeId SizeConstraints::New(int64_t number) {
  const SizeId size = numbers_.Add(number);
  parents_.Add(size);
  counts_ranks_.Add(false);
  by_number_[number].push_back(size);
  return size;
}

SizeId SizeConstraints::NewUnknown(int32_t key) {
  return New(kFirstUnknown + key);
}

SizeId SizeConstraints::Root(SizeId size) const {
  while (parents_[size] != size) {
    parents_[size] = parents_[parents_[size]];
    size = parents_[size];
  }
  return size;
}

void SizeConstraints::Join(SizeId a, SizeId b) {
  STRATA_CHECK(numbers_[a] == numbers_[b], "{} and {} are one size", numbers_[a], numbers_[b]);
  a = Root(a);
  b = Root(b);
  counts_ranks_[std::min(a, b)] = counts_ranks_[a] || counts_ranks_[b];
  parents_[std::max(a, b)] = std::min(a, b);
}

void SizeConstraints::JoinEqual() {
  for (const auto& [number, sizes] : by_number_)
    JoinAll(number);
}

void SizeConstraints::JoinAll(int64_t number) {
  const auto found = by_number_.find(number);
  if (found == by_number_.end() || !joined_numbers_.insert(number).second) return;
  for (const SizeId size : found->second)
    Join(found->second.front(), size);
}

bool SizeConstraints::Stays(SizeId size) const {
  return std::ranges::any_of(kept_, [&](SizeId kept) { return Root(kept) == Root(size); });
}

std::set<int64_t> SizeConstraints::Kept() const {
  std::set<int64_t> numbers;
  for (const auto& [number, sizes] : by_number_)
    if (number < kFirstUnknown &&
        std::ranges::any_of(sizes, [&](SizeId size) { return IsKept(size); }))
      numbers.insert(number);
  return numbers;
}

size_t SizeConstraints::NumSizes() const {
  size_t count = 0;
  for (const SizeId size : Ids<SizeId>(numbers_.size()))
    count += Root(size) == size ? 1 : 0;
  return count;
}

void SizeConstraints::AddProduct(std::span<const SizeId> left, std::span<const SizeId> right) {
  const auto product_of = [&](std::span<const SizeId> sizes) {
    double product = 1;
    for (const SizeId size : sizes)
      product *= static_cast<double>(numbers_[size]);
    return product;
  };
  if (product_of(left) != product_of(right)) return;
  const auto without_ones = [&](std::span<const SizeId> sizes) {
    std::vector<SizeId> rest;
    std::ranges::copy_if(sizes, std::back_inserter(rest),
                         [&](SizeId size) { return numbers_[size] != 1; });
    return rest;
  };
  Product product{.left = without_ones(left), .right = without_ones(right)};
  if (product.left.size() == 1 && product.right.size() == 1) {
    Join(product.left[0], product.right[0]);
  } else if (!product.left.empty() || !product.right.empty()) {
    products_.push_back(std::move(product));
  }
}

void SizeConstraints::AddCut(SizeId whole, SizeId ranks, SizeId part) {
  if (numbers_[part] == 1) {
    cut_to_one_.emplace_back(whole, ranks);
  } else {
    products_.push_back({.left = {whole}, .right = {ranks, part}, .is_cut = true});
  }
}

void SizeConstraints::AddSum(SizeId total, std::span<const SizeId> parts) {
  int64_t sum = 0;
  for (const SizeId part : parts)
    sum += numbers_[part];
  if (sum != numbers_[total]) return;
  if (parts.size() == 1) {
    Join(total, parts[0]);
  } else if (!parts.empty()) {
    sums_.emplace_back(total, std::vector<SizeId>(parts.begin(), parts.end()));
  }
}

std::vector<SizeId> SizeConstraints::Roots(std::span<const SizeId> sizes) const {
  std::vector<SizeId> roots;
  for (const SizeId size : sizes)
    roots.push_back(Root(size));
  return roots;
}

std::vector<int64_t> SizeConstraints::Numbers(std::span<const SizeId> sizes) const {
  std::vector<int64_t> numbers;
  for (const SizeId size : sizes)
    numbers.push_back(numbers_[size]);
  return numbers;
}

std::vector<SizeId> SizeConstraints::Ranks(std::span<const SizeId> sizes) const {
  std::vector<SizeId> ranks;
  for (const SizeId root : Roots(sizes))
    ranks.push_back(counts_ranks_[root] ? root : SizeId());
  return ranks;
}

void SizeConstraints::JoinFollowing(Kinds kinds) {
  while (JoinParts()) {
  }
  for (const auto& [whole, ranks] : cut_to_one_)
    Join(whole, ranks);
  while (JoinParts()) {
  }
  JoinAlike(kinds);
  while (JoinParts()) {
  }
}

bool SizeConstraints::JoinParts() {
  bool joined = false;
  const auto join = [&](SizeId a, SizeId b) {
    joined |= Root(a) != Root(b);
    Join(a, b);
  };
  using Parts = std::tuple<SizeId, std::vector<int64_t>, std::vector<SizeId>>;
  std::map<Parts, std::vector<SizeId>> parts_of;
  std::map<std::vector<SizeId>, SizeId> whole_of;
  std::map<std::pair<SizeId, SizeId>, SizeId> part_of;  // of a whole, cut by ranks
  for (const Product& product : products_) {
    if (product.is_cut) {
      const SizeId whole = product.left[0], ranks = product.right[0], part = product.right[1];
      join(part_of.emplace(std::pair(Root(whole), Root(ranks)), part).first->second, part);
    }
    for (const bool swapped : {false, true}) {
      const std::vector<SizeId>& whole = swapped ? product.right : product.left;
      const std::vector<SizeId>& parts = swapped ? product.left : product.right;
      if (whole.size() != 1) continue;
      const auto [made, is_first] = whole_of.emplace(Roots(parts), whole[0]);
      if (!is_first && numbers_[made->second] == numbers_[whole[0]]) join(made->second, whole[0]);
      if (product.is_cut) continue;
      const auto [known, is_new] =
          parts_of.emplace(Parts(Root(whole[0]), Numbers(parts), Ranks(parts)), parts);
      for (size_t i = 0; i < parts.size() && !is_new; ++i)
        join(known->second[i], parts[i]);
      const std::vector<SizeId> first = {parts[0]};
      join(parts_of.emplace(Parts(Root(whole[0]), Numbers(first), Ranks(first)), first)
               .first->second[0],
           first[0]);
    }
  }
  std::map<std::pair<SizeId, std::vector<int64_t>>, std::vector<SizeId>> summands_of;
  for (const auto& [total, unsorted] : sums_) {
    std::vector<SizeId> parts = unsorted;
    std::ranges::stable_sort(parts, {}, [&](SizeId size) { return numbers_[size]; });
    const auto [known, is_new] = summands_of.emplace(std::pair(Root(total), Numbers(parts)), parts);
    for (size_t i = 0; i < parts.size() && !is_new; ++i)
      join(known->second[i], parts[i]);
  }
  return joined;
}

std::set<SizeConstraints::Equation> SizeConstraints::Equations() const {
  std::set<Equation> equations;
  for (const Product& product : products_)
    equations.insert({Roots(product.left), Roots(product.right), true});
  for (const auto& [total, parts] : sums_)
    equations.insert({{Root(total)}, Roots(parts), false});
  return equations;
}

std::map<SizeId, size_t> SizeConstraints::Refined(const std::map<SizeId, size_t>& kind_of,
                                                  const std::set<Equation>& equations) const {
  // A place: the kinds of all sizes of an equation, and which of them.
  using Place = std::pair<std::vector<size_t>, size_t>;
  std::map<SizeId, std::set<Place>> places;
  for (const auto& [left, right, is_product] : equations) {
    std::vector<SizeId> sizes = left;
    std::ranges::copy(right, std::back_inserter(sizes));
    std::vector<size_t> kinds = {is_product ? size_t{1} : 0, left.size()};
    for (const SizeId size : sizes)
      kinds.push_back(kind_of.at(size));
    for (size_t i = 0; i < sizes.size(); ++i)
      places[sizes[i]].emplace(kinds, i);
  }
  std::map<std::pair<size_t, std::set<Place>>, size_t> known;
  std::map<SizeId, size_t> refined;
  for (const auto& [size, kind] : kind_of) {
    const size_t next = known.size();
    refined.emplace(size, known.try_emplace({kind, std::move(places[size])}, next).first->second);
  }
  return refined;
}

void SizeConstraints::JoinAlike(Kinds kinds) {
  const std::set<Equation> equations = Equations();
  std::map<std::pair<int64_t, SizeId>, size_t> known;  // numbers, and what counts ranks
  std::map<SizeId, size_t> kind_of;
  for (const SizeId size : Ids<SizeId>(numbers_.size())) {
    if (Root(size) != size) continue;
    const std::pair number(numbers_[size], counts_ranks_[size] ? size : SizeId());
    kind_of.emplace(size, known.emplace(number, known.size()).first->second);
  }
  const auto count = [&] {
    std::set<size_t> all;
    for (const auto& [size, kind] : kind_of)
      all.insert(kind);
    return all.size();
  };
  for (size_t before = 0; before != count();) {
    before = count();
    kind_of = Refined(kind_of, equations);
    if (kinds == Kinds::kByPlace) break;
  }
  std::map<size_t, SizeId> first;
  for (const auto& [size, kind] : kind_of)
    Join(first.emplace(kind, size).first->second, size);
}

}  // namespace strata::prove
