#include "prove/evaluation/held_values.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "prove/evaluation/parts.h"
#include "prove/evaluation/shared_calls.h"
#include "prove/ops/elementwise.h"
#include "prove/values/compare.h"

namespace strata::prove {

int64_t HeldValues::FirstWithPart(const Placements& placements, int64_t rank) const {
  std::vector<int64_t> coordinates = mesh_.Coordinates(rank);
  for (size_t axis = 0; axis < placements.size(); ++axis)
    if (placements[axis].kind != Placement::Kind::kShard) coordinates[axis] = 0;
  return mesh_.RankAt(coordinates);
}

bool HeldValues::IsEven(const Tensor& whole, const Placements& placements) const {
  std::vector<int64_t> sizes = whole.sizes();
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    const Placement& p = placements[axis];
    if (!IsShard(p)) continue;
    int64_t& size = sizes[static_cast<size_t>(p.dim)];
    if (size % mesh_.axes()[axis].size != 0) return false;
    size /= mesh_.axes()[axis].size;
  }
  return true;
}

Tensor HeldValues::Wanted(const Tensor& whole, const Placements& placements, int64_t rank) const {
  Tensor part = LocalPart(whole, placements, mesh_, rank);
  if (IsEven(whole, placements)) return part;
  part = part.Copy();
  const Tensor ones(Domain::kInteger, whole.sizes(), 1);
  const std::vector<uint64_t> is_inside = LocalPart(ones, placements, mesh_, rank).Read();
  std::vector<uint64_t>& words = part.storage()->words;
  for (size_t i = 0; i < words.size(); ++i)
    if (is_inside[i] == 0) words[i] = kUndefined;
  return part;
}

Result<Tensor> HeldValues::Together(std::span<const Tensor* const> parts,
                                    const Placements& placements, int64_t rank) const {
  std::vector<int64_t> coordinates = mesh_.Coordinates(rank);
  Tensor sum = *parts[static_cast<size_t>(rank)];
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    if (!IsPartial(placements[axis])) continue;
    // The sum over one axis of what is summed over those before it.
    const int64_t size = mesh_.axes()[axis].size;
    Placements before(placements.begin(), placements.begin() + static_cast<int64_t>(axis));
    before.resize(placements.size());
    std::optional<Tensor> total;
    for (int64_t i = 0; i < size; ++i) {
      std::vector<int64_t> other = coordinates;
      other[axis] = i;
      STRATA_TRY(const Tensor part, Together(parts, before, mesh_.RankAt(other)));
      if (!total) {
        total = part;
      } else {
        STRATA_TRY(total, Add(*total, part));
      }
    }
    sum = *std::move(total);
    if (module_.str(placements[axis].reduce) == "avg") {
      const Residue inverse = Inverse(FromInteger(size));
      sum = Map(sum, sum.domain(), [&](uint64_t x) { return Mul(x, inverse); });
    }
  }
  return sum;
}

bool HeldValues::IsKnown(std::span<const Tensor* const> parts, const Placements& placements,
                         int64_t rank) const {
  const std::vector<int64_t> coordinates = mesh_.Coordinates(rank);
  bool is_sum = false;
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    is_sum = is_sum || IsPartial(placements[axis]);
    if (IsPartial(placements[axis]) && coordinates[axis] > 0) return true;
  }
  const int64_t first = FirstWithPart(placements, rank);
  return !is_sum && first < rank &&
         IsSameMemory(*parts[static_cast<size_t>(first)], *parts[static_cast<size_t>(rank)]);
}

std::optional<std::string> HeldValues::Difference(const Value& whole,
                                                  std::span<const Value* const> parts,
                                                  const Placements& placements) const {
  const auto* expected = std::get_if<Tensor>(&whole);
  std::vector<const Tensor*> tensors;
  for (const Value* part : parts) {
    const auto* tensor = std::get_if<Tensor>(part);
    if ((tensor == nullptr) != (expected == nullptr)) return "a tensor and a number";
    tensors.push_back(tensor);
  }
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const auto self = static_cast<int64_t>(rank);
    if (expected == nullptr) {
      if (SameValue(whole, *parts[rank])) continue;
      return fmt::format("rank {}: {}", rank, DescribeDifference(whole, *parts[rank]));
    }
    if (IsKnown(tensors, placements, self)) continue;
    const Value wanted = Wanted(*expected, placements, self);
    const auto together = Together(tensors, placements, self);
    if (!together) return fmt::format("rank {}: {}", rank, together.error().message());
    if (SameValue(wanted, Value(*together))) continue;
    return fmt::format("rank {}: {}", rank, DescribeDifference(wanted, Value(*together)));
  }
  return std::nullopt;
}

}  // namespace strata::prove
