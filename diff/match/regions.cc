#include "diff/match/regions.h"

#include <algorithm>

namespace strata {

Regions::Regions(const Matching& matching, const ScopePair& scope, Side side)
    : matching_(matching),
      labels_(matching.labels(side)),
      side_(side),
      ids_(scope.ids(side)),
      region_of_(ids_.size()) {
  for (EntityId i : ids_) {
    const bool may_be = labels_.kind[i] == EntityKind::kCompute && !matching.matched(side, i) &&
                        !matching.forbidden(side, i);
    RegionOf(i) = may_be ? kNotYet : kNever;
  }
}

void Regions::Update(std::vector<uint64_t>& changed) {
  const bool is_first = regions_.empty() && taken_in_ == 0;
  const auto first_new = static_cast<int32_t>(regions_.size());
  const auto grow = [&](EntityId seed) {
    if (RegionOf(seed) == kNever || RegionOf(seed) >= first_new) return;
    Grow(seed, first_new);
    const Region& region = regions_.back();
    if (region.around == 0) return;
    Alike& alike = *alike_.Emplace(region.around, {}).first;
    ++alike.count;
    alike.sum_of_regions += regions_.size() - 1;
    changed.push_back(region.around);
  };
  if (is_first) {
    taken_in_ = matching_.made().size();
    for (EntityId i : ids_)
      grow(i);
  } else {
    for (EntityId i : TakeInNewPairs(changed))
      grow(i);
  }
}

std::span<const EntityId> Regions::Only(uint64_t around) const {
  const Alike* alike = alike_.Find(around);
  if (alike == nullptr || alike->count != 1) return {};
  const Region& region = regions_[alike->sum_of_regions];
  return std::span(members_).subspan(region.begin, region.end - region.begin);
}

/// Nodes next to new pairs: each part of a region that was cut has one.
std::vector<EntityId> Regions::TakeInNewPairs(std::vector<uint64_t>& changed) {
  std::vector<EntityId> seeds;
  const auto add = [&](const auto& edges) {
    for (const Labels::Edge& edge : edges) {
      if (RegionOf(edge.entity) == kNever) continue;
      Drop(RegionOf(edge.entity), changed);
      seeds.push_back(edge.entity);
    }
  };
  for (; taken_in_ < matching_.made().size(); ++taken_in_) {
    const Matching::Made& made = matching_.made()[taken_in_];
    const EntityId i = side_ == kBefore ? made.before : made.after;
    if (!ids_.Contains(i)) continue;
    Drop(RegionOf(i), changed);
    RegionOf(i) = kNever;
    add(labels_.operands(i));
    add(labels_.users(i));
  }
  return seeds;
}

void Regions::Drop(int32_t region, std::vector<uint64_t>& changed) {
  if (region < 0) return;
  uint64_t& around = regions_[static_cast<size_t>(region)].around;
  if (around == 0) return;
  Alike& alike = *alike_.Find(around);
  --alike.count;
  alike.sum_of_regions -= static_cast<size_t>(region);
  changed.push_back(around);
  around = 0;
}

/// Makes the region of `seed`. One that meets a region from `first_new` on is a part of it, and
/// that one was too large to be walked through.
void Regions::Grow(EntityId seed, int32_t first_new) {
  const auto own = static_cast<int32_t>(regions_.size());
  const size_t begin = members_.size();
  bool is_large = false;
  const auto reach = [&](const auto& edges) {
    for (const Labels::Edge& edge : edges) {
      int32_t& region = RegionOf(edge.entity);
      if (region == kNever || region == own) continue;
      is_large |= region >= first_new || members_.size() - begin == kMostNodes;
      if (is_large) return;
      region = own;
      members_.push_back(edge.entity);
    }
  };
  RegionOf(seed) = own;
  members_.push_back(seed);
  for (size_t next = begin; next < members_.size() && !is_large; ++next) {
    reach(labels_.operands(members_[next]));
    if (!is_large) reach(labels_.users(members_[next]));
  }
  if (is_large) members_.resize(begin);
  regions_.push_back({0, static_cast<uint32_t>(begin), static_cast<uint32_t>(members_.size())});
  const std::span<EntityId> nodes = std::span(members_).subspan(begin);
  std::ranges::sort(nodes);
  regions_.back().around = Around(nodes);
}

/// A hash of a set: each node counts once, however many read it.
uint64_t Regions::Around(std::span<const EntityId> nodes) {
  tokens_.clear();
  const auto add = [&](const auto& edges, uint64_t role) {
    for (const Labels::Edge& edge : edges) {
      const uint64_t token = matching_.token(side_, edge.entity);
      if (token != 0) tokens_.push_back(Mix(token, role));
    }
  };
  for (EntityId i : nodes) {
    add(labels_.operands(i), 1);
    add(labels_.users(i), 2);
  }
  std::ranges::sort(tokens_);
  uint64_t around = 0;
  for (size_t k = 0; k < tokens_.size(); ++k)
    around += k == 0 || tokens_[k] != tokens_[k - 1] ? tokens_[k] : 0;
  return around;
}

}  // namespace strata
