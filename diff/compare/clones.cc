#include "diff/compare/clones.h"

#include <algorithm>
#include <ranges>
#include <utility>
#include <vector>

#include "base/flat_map.h"
#include "diff/compare/value_numbers.h"

namespace strata {
namespace {

/// Of a node with many users, as many are asked which of them reads it like a copy.
constexpr size_t kMaxUsers = 64;

class CloneFinder {
 public:
  CloneFinder(const Listing& after, const Matching& matching)
      : matching_(matching), labels_(matching.labels(kAfter)), original_of_(labels_.size()) {
    numberings_.push_back(ValueNumbers(labels_));
    if (AnyNewPiece()) numberings_.push_back(ValueNumbersOfCopies(after, matching, kAfter));
  }

  std::vector<Clone> Run() {
    for (const auto& numbers : numberings_) {
      for (const auto& [original, copies] : EqualsOfMatched(matching_, kAfter, numbers)) {
        for (const EntityId copy : copies) {
          if (!original_of_[copy].valid()) original_of_[copy] = original;
        }
      }
    }
    for (const EntityId i : labels_.ids()) {
      if (original_of_[i].valid()) clones_.push_back({i, original_of_[i]});
    }
    ChooseOriginals();
    return std::move(clones_);
  }

 private:
  /// Whether value numbers with equal pieces are other ones.
  bool AnyNewPiece() const {
    for (const EntityId i : labels_.ids()) {
      if (labels_.piece[i] && !matching_.matched(kAfter, i)) return true;
    }
    return false;
  }

  bool AreEqual(EntityId a, EntityId b) const {
    return std::ranges::any_of(numberings_,
                               [&](const auto& numbers) { return numbers[a] == numbers[b]; });
  }

  /// Users before what they use, then, where none says anything, what is read before its users.
  void ChooseOriginals() {
    is_sure_.assign(labels_.size(), true);
    for (const auto& numbers : numberings_)
      DoubtCopiesOfSeveral(numbers);
    for (const Clone& clone : clones_ | std::views::reverse)
      Choose(clone.copy, ReadBefore(clone.copy));
    for (const Clone& clone : clones_) {
      if (!is_sure_[clone.copy]) Choose(clone.copy, ReaderOfOriginals(clone.copy));
    }
    for (Clone& clone : clones_)
      clone.original = original_of_[clone.copy];
  }

  /// A copy may have another original where several matched nodes have its number.
  void DoubtCopiesOfSeveral(const IdVector<EntityId, uint64_t>& numbers) {
    FlatMap<uint64_t, int32_t> originals;  // by number
    for (const Clone& clone : clones_)
      originals.Emplace(numbers[clone.copy], 0);
    for (const EntityId i : labels_.ids()) {
      int32_t* const count = originals.Find(numbers[i]);
      if (count != nullptr && matching_.matched(kAfter, i)) ++*count;
    }
    for (const Clone& clone : clones_) {
      if (*originals.Find(numbers[clone.copy]) > 1) is_sure_[clone.copy] = false;
    }
  }

  void Choose(EntityId copy, EntityId original) {
    if (!original.valid() || !AreEqual(original, original_of_[copy])) return;
    original_of_[copy] = original;
    is_sure_[copy] = true;
  }

  /// Whose copy `i` is, or itself if it is matched; none: neither, or that is not known for sure.
  EntityId OriginOf(EntityId i) const {
    if (matching_.matched(kAfter, i)) return i;
    return is_sure_[i] ? original_of_[i] : EntityId{};
  }

  /// What the users of a copy read in its place before, as a node of the after side; none:
  /// unknown.
  EntityId ReadBefore(EntityId copy) const {
    for (const Labels::Edge& user : labels_.users(copy)) {
      const EntityId original = OriginOf(user.entity);
      if (!original.valid() || !matching_.SlotsAgree(kAfter, original)) continue;
      const EntityId before = matching_.partner(kAfter, original);
      const auto operands = matching_.labels(kBefore).operands(before);
      const auto slot = static_cast<size_t>(user.slot);
      if (slot >= operands.size()) continue;
      const EntityId image = matching_.partner(kBefore, operands[slot].entity);
      if (image.valid()) return image;
    }
    return {};
  }

  /// The matched node that is equal to a copy and reads what an operand of it is a copy of.
  EntityId ReaderOfOriginals(EntityId copy) const {
    for (const Labels::Edge& operand : labels_.operands(copy)) {
      if (matching_.matched(kAfter, operand.entity)) continue;  // All equal nodes may read it.
      const EntityId original = OriginOf(operand.entity);
      if (!original.valid()) continue;
      for (const Labels::Edge& user : labels_.users(original) | std::views::take(kMaxUsers)) {
        if (user.slot == operand.slot && matching_.matched(kAfter, user.entity) &&
            AreEqual(user.entity, original_of_[copy]))
          return user.entity;
      }
    }
    return {};
  }

  const Matching& matching_;
  const Labels& labels_;
  std::vector<IdVector<EntityId, uint64_t>> numberings_;
  IdVector<EntityId, EntityId> original_of_;  // none: no copy
  IdVector<EntityId, bool> is_sure_;          // of copies: the only original, or edges say so
  std::vector<Clone> clones_;
};

}  // namespace

std::vector<Clone> FindClones(const Listing& after, const Matching& matching) {
  return CloneFinder(after, matching).Run();
}

}  // namespace strata
