#include "diff/graph/neighbourhood.h"

namespace strata {
namespace {

size_t At(const ScopePair& scope, Side side, int32_t i) {
  return static_cast<size_t>(i - scope.begin[side]);
}

size_t SizeOf(const ScopePair& scope, Side side) {
  return static_cast<size_t>(scope.end[side] - scope.begin[side]);
}

bool IsLeaf(EntityKind kind) {
  return kind == EntityKind::kInput || kind == EntityKind::kConstant;
}

}  // namespace

std::vector<uint64_t> UpCones(const Matching& matching, Side side, const ScopePair& scope,
                              bool strict) {
  const Labels& labels = matching.labels(side);
  std::vector<uint64_t> cones(SizeOf(scope, side));
  for (int32_t i = scope.begin[side]; i < scope.end[side]; ++i) {
    uint64_t& cone = cones[At(scope, side, i)];
    cone = matching.token(side, i);
    if (cone != 0) continue;
    const auto index = static_cast<size_t>(i);
    cone = labels.type[index];
    if (strict && IsLeaf(labels.kind[index])) cone = Mix(cone, side + 1);
    for (const Labels::Edge& operand : labels.operands(i))
      cone = Mix(cone, cones[At(scope, side, operand.entity)]);
  }
  return cones;
}

std::vector<uint64_t> DownCones(const Matching& matching, Side side, const ScopePair& scope) {
  const Labels& labels = matching.labels(side);
  std::vector<uint64_t> cones(SizeOf(scope, side));
  for (int32_t i = scope.end[side] - 1; i >= scope.begin[side]; --i) {
    uint64_t& cone = cones[At(scope, side, i)];
    cone = matching.token(side, i);
    if (cone != 0) continue;
    uint64_t users = 0;
    for (const Labels::Edge& user : labels.users(i)) {
      const auto slot = static_cast<uint64_t>(matching.SlotOfUser(side, user));
      users += Mix(cones[At(scope, side, user.entity)], slot);
    }
    cone = Mix(labels.type[static_cast<size_t>(i)], users);
  }
  return cones;
}

std::vector<std::vector<uint64_t>> RadiusHashes(const Matching& matching, Side side,
                                                const ScopePair& scope, LabelVector labels_of,
                                                int max_radius) {
  const Labels& labels = matching.labels(side);
  std::vector<std::vector<uint64_t>> hashes(static_cast<size_t>(max_radius) + 1);
  hashes[0].resize(SizeOf(scope, side));
  for (int32_t i = scope.begin[side]; i < scope.end[side]; ++i) {
    const uint64_t token = matching.token(side, i);
    hashes[0][At(scope, side, i)] =
        token != 0 ? token : (labels.*labels_of)[static_cast<size_t>(i)];
  }
  for (size_t radius = 1; radius < hashes.size(); ++radius) {
    const std::vector<uint64_t>& last = hashes[radius - 1];
    std::vector<uint64_t>& hash_of = hashes[radius];
    hash_of = hashes[0];
    for (int32_t i = scope.begin[side]; i < scope.end[side]; ++i) {
      if (matching.matched(side, i)) continue;
      uint64_t hash = hashes[0][At(scope, side, i)];
      const auto operands = labels.operands(i);
      if (operands.size() <= Matching::kMaxEdges) {
        for (const Labels::Edge& operand : operands)
          hash = Mix(hash, last[At(scope, side, operand.entity)]);
      }
      const auto users = labels.users(i);
      uint64_t sum = 0;
      if (users.size() <= Matching::kMaxEdges) {
        for (const Labels::Edge& user : users) {
          const auto slot = static_cast<uint64_t>(matching.SlotOfUser(side, user));
          sum += Mix(last[At(scope, side, user.entity)], slot);
        }
      }
      hash_of[At(scope, side, i)] = Mix(hash, sum);
    }
  }
  return hashes;
}

}  // namespace strata
