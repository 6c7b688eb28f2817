#include "diff/match/input_uses.h"

#include <algorithm>

namespace strata {

std::vector<InputUses::Sketch> InputUses::SketchesOf(Side side,
                                                     std::span<const EntityId> inputs) const {
  std::vector<Sketch> sketches;
  for (EntityId i : inputs) {
    Sketch sketch;
    AddPaths(side, i, 1, 4, sketch);
    std::ranges::sort(sketch);
    sketch.erase(std::unique(sketch.begin(), sketch.end()), sketch.end());
    sketches.push_back(std::move(sketch));
  }
  return sketches;
}

void InputUses::AddPaths(Side side, EntityId i, uint64_t path, int depth, Sketch& sketch) const {
  constexpr size_t kMaxPaths = 64;
  const Labels& labels = matching_.labels(side);
  for (const Labels::Edge& user : labels.users(i)) {
    if (sketch.size() >= kMaxPaths) return;
    const uint64_t op = labels.op[user.entity];
    const uint64_t next =
        Mix(Mix(path, op), static_cast<uint64_t>(matching_.SlotOfUser(side, user)));
    sketch.push_back(next);
    if (depth > 1) AddPaths(side, user.entity, next, depth - 1, sketch);
  }
}

int32_t InputUses::Likeness(const Sketch& a, const Sketch& b) {
  const size_t fewer = std::min(a.size(), b.size());
  if (fewer == 0) return 0;
  size_t common = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    common += a[i] == b[j];
    const bool step_a = a[i] <= b[j], step_b = b[j] <= a[i];
    i += step_a;
    j += step_b;
  }
  return static_cast<int32_t>(256 * common / fewer);
}

bool InputUses::ShareUse(EntityId before, EntityId after) const {
  const auto users_before = matching_.labels(kBefore).users(before);
  const auto users_after = matching_.labels(kAfter).users(after);
  if (users_before.empty() || users_after.empty()) return true;
  const auto first = [](std::span<const Labels::Edge> users) {
    constexpr size_t kEnough = 6;
    return users.first(std::min(users.size(), kEnough));
  };
  for (const Labels::Edge& a : first(users_before)) {
    for (const Labels::Edge& b : first(users_after)) {
      if (matching_.labels(kBefore).op[a.entity] == matching_.labels(kAfter).op[b.entity] &&
          matching_.SlotOfUser(kBefore, a) == matching_.SlotOfUser(kAfter, b)) {
        return true;
      }
    }
  }
  return AreForeign(kBefore, first(users_before)) && AreForeign(kAfter, first(users_after));
}

bool InputUses::AreForeign(Side side, std::span<const Labels::Edge> users) const {
  std::optional<FlatMap<uint64_t, bool>>& others = ops_[1 - side];
  if (!others) {
    others.emplace();
    for (EntityId i : scope_.ids(1 - side))
      others->Emplace(matching_.labels(1 - side).op[i], true);
  }
  return std::ranges::none_of(users, [&](const Labels::Edge& user) {
    return others->Contains(matching_.labels(side).op[user.entity]);
  });
}

}  // namespace strata
