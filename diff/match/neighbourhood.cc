#include "diff/match/neighbourhood.h"

#include <span>

#include "diff/graph/large_arrays.h"
#include "diff/graph/parallel.h"
#include "diff/match/fetch_ahead.h"

namespace strata {
namespace {

bool IsLeaf(EntityKind kind) {
  return kind == EntityKind::kInput || kind == EntityKind::kConstant;
}

/// Prefetches the hashes of neighbours.
void FetchHashes(const std::vector<uint64_t>& hashes, Side side, const ScopePair& scope,
                 const auto& edges) {
  FetchAhead(edges, [&](EntityId i) { return &hashes[scope.PlaceOf(side, i)]; });
}

}  // namespace

std::vector<uint64_t> UpCones(const Matching& matching, Side side, const ScopePair& scope,
                              bool strict) {
  const Labels& labels = matching.labels(side);
  auto cones = MakeLarge<std::vector<uint64_t>>(scope.size(side));
  for (EntityId i : scope.ids(side)) {
    if (const EntityId later{i.index + kAhead}; later < scope.end[side])
      FetchHashes(cones, side, scope, labels.operands(later));
    uint64_t& cone = cones[scope.PlaceOf(side, i)];
    cone = matching.token(side, i);
    if (cone != 0) continue;
    cone = labels.type[i];
    if (strict && IsLeaf(labels.kind[i])) cone = Mix(cone, side + 1);
    for (const Labels::Edge& operand : labels.operands(i))
      cone = Mix(cone, cones[scope.PlaceOf(side, operand.entity)]);
  }
  return cones;
}

std::vector<uint64_t> DownCones(const Matching& matching, Side side, const ScopePair& scope) {
  const Labels& labels = matching.labels(side);
  auto cones = MakeLarge<std::vector<uint64_t>>(scope.size(side));
  for (EntityId i = scope.end[side]; i > scope.begin[side];) {
    --i.index;
    if (const EntityId later{i.index - kAhead}; later >= scope.begin[side])
      FetchHashes(cones, side, scope, labels.users(later));
    uint64_t& cone = cones[scope.PlaceOf(side, i)];
    cone = matching.token(side, i);
    if (cone != 0) continue;
    uint64_t users = 0;
    for (const Labels::Edge& user : labels.users(i)) {
      const auto slot = static_cast<uint64_t>(matching.SlotOfUser(side, user));
      users += Mix(cones[scope.PlaceOf(side, user.entity)], slot);
    }
    cone = Mix(labels.type[i], users);
  }
  return cones;
}

namespace {

/// What each node of the scope counts as for its neighbours.
std::vector<uint64_t> HashesOfRadiusZero(const Matching& matching, Side side,
                                         const ScopePair& scope, LabelKind labels_of) {
  auto hashes = MakeLarge<std::vector<uint64_t>>(scope.size(side));
  for (EntityId i : scope.ids(side)) {
    const uint64_t token = matching.token(side, i);
    hashes[scope.PlaceOf(side, i)] = token != 0 ? token : matching.labels(side).Of(labels_of, i);
  }
  return hashes;
}

/// Of the hashes of the nodes that read `i`, and where.
uint64_t HashOfUsers(const Matching& matching, Side side, const ScopePair& scope,
                     const std::vector<uint64_t>& hashes, EntityId i) {
  const auto users = matching.labels(side).users(i);
  uint64_t sum = 0;
  if (users.size() > Matching::kMaxEdges) return sum;
  for (const Labels::Edge& user : users) {
    const auto slot = static_cast<uint64_t>(matching.SlotOfUser(side, user));
    sum += Mix(hashes[scope.PlaceOf(side, user.entity)], slot);
  }
  return sum;
}

/// The hash of `i`, `hash` at radius 0, with the hashes of its neighbours.
uint64_t Widened(const Matching& matching, Side side, const ScopePair& scope,
                 const std::vector<uint64_t>& last, EntityId i, uint64_t hash) {
  const Labels& labels = matching.labels(side);
  const auto operands = labels.operands(i);
  if (operands.size() <= Matching::kMaxEdges) {
    for (const Labels::Edge& operand : operands)
      hash = Mix(hash, last[scope.PlaceOf(side, operand.entity)]);
  }
  return Mix(hash, HashOfUsers(matching, side, scope, last, i));
}

}  // namespace

std::vector<uint64_t> UseHashes(const Matching& matching, Side side, const ScopePair& scope,
                                int depth) {
  const std::vector<uint64_t> own = HashesOfRadiusZero(matching, side, scope, LabelKind::kType);
  std::vector<uint64_t> hashes = own, deeper(own.size());
  for (int step = 0; step < depth; ++step) {
    for (size_t k = 0; k < own.size(); ++k) {
      const EntityId i{scope.begin[side].index + static_cast<int32_t>(k)};
      deeper[k] = matching.token(side, i) != 0
                      ? own[k]
                      : Mix(own[k], HashOfUsers(matching, side, scope, hashes, i));
    }
    std::swap(hashes, deeper);
  }
  return hashes;
}

std::vector<EntityId> NotMatched(const Matching& matching, Side side, const ScopePair& scope) {
  std::vector<EntityId> nodes;
  ReserveLarge(nodes, scope.size(side));
  for (EntityId i : scope.ids(side)) {
    if (!matching.matched(side, i)) nodes.push_back(i);
  }
  return nodes;
}

GrowingRadius::GrowingRadius(const Matching& matching, Side side, const ScopePair& scope,
                             LabelKind labels_of)
    : matching_(matching),
      side_(side),
      scope_(scope),
      label_(labels_of),
      hashes_(HashesOfRadiusZero(matching, side, scope, labels_of)) {}

void GrowingRadius::Grow(std::span<const EntityId> nodes) {
  // Not kept: it is as large as the hashes, which CommonHashes copies between two steps.
  std::vector<uint64_t> wider;
  ReserveLarge(wider, nodes.size());
  const Labels& labels = matching_.labels(side_);
  for (size_t k = 0; k < nodes.size(); ++k) {
    if (k + kAhead < nodes.size()) {
      FetchHashes(hashes_, side_, scope_, labels.operands(nodes[k + kAhead]));
      FetchHashes(hashes_, side_, scope_, labels.users(nodes[k + kAhead]));
    }
    const EntityId i = nodes[k];
    const uint64_t token = matching_.token(side_, i);
    const uint64_t own = token != 0 ? token : labels.Of(label_, i);
    wider.push_back(Widened(matching_, side_, scope_, hashes_, i, own));
  }
  for (size_t k = 0; k < nodes.size(); ++k)
    hashes_[scope_.PlaceOf(side_, nodes[k])] = wider[k];
}

void CommonHashes::Follow(const std::vector<EntityId>& nodes, int radius, Followed& followed) {
  if (followed.nodes.empty()) {
    followed.nodes = nodes;
    AssignLarge(followed.radii, nodes.size(), static_cast<uint8_t>(radius));
    return;
  }
  size_t at = 0;
  for (EntityId i : nodes) {
    while (followed.nodes[at] != i)
      ++at;
    followed.radii[at] = static_cast<uint8_t>(radius);
  }
}

CommonHashes::CommonHashes(const Matching& matching, const ScopePair& scope, LabelKind labels_of,
                           int min_radius, int max_radius)
    : min_radius_(min_radius) {
  std::array<GrowingRadius, 2> growing{GrowingRadius(matching, kBefore, scope, labels_of),
                                       GrowingRadius(matching, kAfter, scope, labels_of)};
  std::array<std::vector<EntityId>, 2> nodes{NotMatched(matching, kBefore, scope),
                                             NotMatched(matching, kAfter, scope)};
  for (int radius = 1; radius <= max_radius; ++radius) {
    const auto grow = [&](Side side) { growing[side].Grow(nodes[side]); };
    AtOnce(nodes[kBefore].size(), [&] { grow(kBefore); }, [&] { grow(kAfter); });
    // What is nowhere on the other side is nowhere there with more around it, either.
    DropForeign(nodes[kBefore], nodes[kAfter],
                [&](Side side, EntityId i) { return growing[side].hash(i); });
    if (radius < min_radius) continue;
    std::array<std::vector<uint64_t>, 2>& hashes = hashes_.emplace_back();
    for (Side side : {kBefore, kAfter}) {
      ReserveLarge(hashes[side], nodes[side].size());
      for (EntityId i : nodes[side])
        hashes[side].push_back(growing[side].hash(i));
      Follow(nodes[side], radius, followed_[side]);
    }
  }
}

}  // namespace strata
