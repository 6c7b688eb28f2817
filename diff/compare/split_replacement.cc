#include "diff/compare/split_replacement.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/ops.h"

namespace strata {
namespace {

/// Larger regions stay whole: cuts are tried one by one.
constexpr size_t kMaxNodes = 64;

class Splitter {
 public:
  Splitter(const Listing& before, const Listing& after, const Matching& matching)
      : listings_{&before, &after}, matching_(matching) {}

  std::vector<Relation> Run(Relation rest) {
    std::vector<Relation> parts;
    const auto sizes_fit = [&] {
      return rest.before.size() > 1 && rest.after.size() > 1 && rest.before.size() <= kMaxNodes &&
             rest.after.size() <= kMaxNodes;
    };
    while (sizes_fit()) {
      std::optional<Cut> cut = FindCut(rest);
      if (!cut) break;
      through_[kBefore][cut->before.index] = through_[kAfter][cut->after.index] =
          static_cast<int32_t>(parts.size());
      rest = std::move(cut->below);
      parts.push_back(std::move(cut->above));
    }
    parts.push_back(std::move(rest));
    return parts;
  }

 private:
  /// A place where one value goes from an upper part of the region to a lower one.
  struct Cut {
    EntityId before, after;  ///< that value
    Relation above, below;
  };
  using Ids = std::vector<EntityId>;

  static bool Has(const Ids& ids, EntityId id) { return std::ranges::binary_search(ids, id); }

  std::optional<Cut> FindCut(const Relation& region) const {
    for (EntityId after : region.after) {
      const Ids above_after = Above(kAfter, region.after, after);
      if (above_after.size() == region.after.size() ||
          !IsOnlyWayOut(kAfter, region.after, above_after, after)) {
        continue;
      }
      std::vector<Cut> cuts;
      for (EntityId before : region.before) {
        if (ValueOf(kBefore, before) != ValueOf(kAfter, after)) continue;
        Cut cut{before, after, {}, {}};
        cut.above.before = Above(kBefore, region.before, before);
        if (cut.above.before.size() == region.before.size() ||
            !IsOnlyWayOut(kBefore, region.before, cut.above.before, before)) {
          continue;
        }
        cut.above.after = above_after;
        cut.below.before = Without(region.before, cut.above.before);
        cut.below.after = Without(region.after, above_after);
        if (!ReadTheSame(cut.above, nullptr) || !ReadTheSame(cut.below, &cut)) continue;
        cuts.push_back(std::move(cut));
      }
      if (cuts.size() == 1) return std::move(cuts[0]);
      if (const int best = BestByName(cuts); best >= 0) {
        return std::move(cuts[static_cast<size_t>(best)]);
      }
    }
    return std::nullopt;
  }

  uint64_t ValueOf(Side side, EntityId id) const { return matching_.labels(side).value[id]; }

  /// `last` and what it is computed from, of the region; in order, as all lists here.
  Ids Above(Side side, const Ids& region, EntityId last) const {
    std::set<EntityId> above{last};
    for (std::vector<EntityId> queue{last}; !queue.empty();) {
      const EntityId id = queue.back();
      queue.pop_back();
      for (const Labels::Edge& operand : matching_.labels(side).operands(id)) {
        const EntityId source{operand.entity};
        if (Has(region, source) && above.insert(source).second) queue.push_back(source);
      }
    }
    return {above.begin(), above.end()};
  }

  /// No other value of the upper part is read by the lower one.
  bool IsOnlyWayOut(Side side, const Ids& region, const Ids& above, EntityId last) const {
    return std::ranges::all_of(above, [&](EntityId id) {
      const auto users = matching_.labels(side).users(id);
      return id == last || std::ranges::none_of(users, [&](const Labels::Edge& user) {
               return Has(region, {user.entity}) && !Has(above, {user.entity});
             });
    });
  }

  static Ids Without(const Ids& ids, const Ids& others) {
    Ids rest;
    std::ranges::set_difference(ids, others, std::back_inserter(rest));
    return rest;
  }

  /// Both sides of a part read the same values from outside, that of the cut among them.
  bool ReadTheSame(const Relation& part, const Cut* cut) const {
    return Sources(kBefore, part.before, cut) == Sources(kAfter, part.after, cut);
  }
  std::set<int32_t> Sources(Side side, const Ids& part, const Cut* cut) const {
    constexpr int32_t kThroughCut = -1, kThroughEarlierCuts = -2, kUnknown = -1'000'000;
    std::set<int32_t> sources;
    for (EntityId id : part) {
      for (const Labels::Edge& operand : matching_.labels(side).operands(id)) {
        const EntityId source{operand.entity};
        if (Has(part, source)) continue;
        if (cut != nullptr && source == (side == kBefore ? cut->before : cut->after)) {
          sources.insert(kThroughCut);
        } else if (const auto known = through_[side].find(source.index);
                   known != through_[side].end()) {
          sources.insert(kThroughEarlierCuts - known->second);
        } else if (matching_.matched(side, source)) {
          sources.insert(side == kBefore ? matching_.partner(kBefore, source).index : source.index);
        } else {
          sources.insert(side == kBefore ? kUnknown : kUnknown - 1);
        }
      }
    }
    return sources;
  }

  /// The cut whose upper part has the operators that the new one is named after; -1: none stands
  /// out.
  int BestByName(const std::vector<Cut>& cuts) const {
    int best = -1, most = 0;
    for (size_t i = 0; i < cuts.size(); ++i) {
      std::string name;
      for (EntityId id : cuts[i].above.after)
        name += std::string(BaseName(listings_[kAfter]->target(id))) + " ";
      int merit = 0;
      for (EntityId id : cuts[i].above.before) {
        const std::string_view word = BaseName(listings_[kBefore]->target(id));
        const size_t at = word.empty() ? std::string::npos : name.find(word);
        merit += at == std::string::npos ? -1 : 1;
        if (at != std::string::npos) name.replace(at, word.size(), " ");
      }
      if (merit == most) best = -1;
      if (merit <= most) continue;
      most = merit;
      best = static_cast<int>(i);
    }
    return best;
  }

  std::array<const Listing*, 2> listings_;
  const Matching& matching_;
  std::array<std::map<int32_t, int32_t>, 2> through_;  // values of earlier cuts
};

}  // namespace

std::vector<Relation> SplitReplacement(const Listing& before, const Listing& after,
                                       const Matching& matching, const Relation& whole) {
  return Splitter(before, after, matching).Run(whole);
}

}  // namespace strata
