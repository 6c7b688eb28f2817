#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "bench/diff_eval/methods/methods.h"
#include "diff/graph/hash.h"
#include "diff/match/labels.h"

namespace strata::bench {
namespace {

/// The matchers of XLA's hlo_diff on one flat graph: exact input cones from the tallest down, then
/// operands of mapped nodes top-down, then greedily bottom-up among nodes of equal operator. Inputs
/// are also paired by position, without which it does worse.
class HloDiff {
 public:
  HloDiff(const Labels& before, const Labels& after)
      : labels_{&before, &after}, partner_{Images(Size(0)), Images(Size(1))} {}

  Partners Run() {
    PairInputs();
    for (int side : {0, 1}) {
      const Labels& labels = *labels_[side];
      cone_[side].resize(Size(side));
      height_[side].assign(Size(side), 0);
      for (EntityId i : labels.ids()) {
        uint64_t cone = labels.type[i];
        for (const Labels::Edge& operand : labels.operands(i)) {
          cone = Mix(cone, cone_[side][operand.entity]);
          height_[side][i] = std::max(height_[side][i], height_[side][operand.entity] + 1);
        }
        cone_[side][i] = cone;
      }
    }
    ExactCones();
    TopDown();
    BottomUp();
    TopDown();
    Partners partners;
    for (EntityId image : partner_[0])
      partners.push_back(image.index);
    return partners;
  }

 private:
  using Images = IdVector<EntityId, EntityId>;
  size_t Size(int side) const { return labels_[side]->size(); }
  bool Open(int side, EntityId i) const { return !partner_[side][i].valid(); }

  bool Map(EntityId a, EntityId b) {
    if (!Open(0, a) || !Open(1, b) || labels_[0]->op[a] != labels_[1]->op[b]) return false;
    partner_[0][a] = b;
    partner_[1][b] = a;
    return true;
  }

  void PairInputs() {
    std::vector<EntityId> inputs[2];
    for (int side : {0, 1}) {
      for (EntityId i : labels_[side]->ids()) {
        if (labels_[side]->kind[i] == EntityKind::kInput) inputs[side].push_back(i);
      }
    }
    if (inputs[0].size() != inputs[1].size()) return;
    for (size_t k = 0; k < inputs[0].size(); ++k)
      Map(inputs[0][k], inputs[1][k]);
  }

  void MapCones(EntityId a, EntityId b) {
    std::queue<std::pair<EntityId, EntityId>> queue;
    queue.emplace(a, b);
    while (!queue.empty()) {
      const auto [x, y] = queue.front();
      queue.pop();
      if (!Map(x, y)) continue;
      const auto operands_x = labels_[0]->operands(x), operands_y = labels_[1]->operands(y);
      for (size_t k = 0; k < std::min(operands_x.size(), operands_y.size()); ++k)
        queue.emplace(operands_x[k].entity, operands_y[k].entity);
    }
  }

  void ExactCones() {
    using Key = std::pair<int, uint64_t>;
    std::map<Key, std::vector<EntityId>, std::greater<>> cones[2];
    for (int side : {0, 1}) {
      for (EntityId i : labels_[side]->ids())
        cones[side][{height_[side][i], cone_[side][i]}].push_back(i);
    }
    for (const auto& [key, befores] : cones[0]) {
      const auto found = cones[1].find(key);
      if (found == cones[1].end()) continue;
      std::vector<EntityId> a = befores, b = found->second;
      std::erase_if(a, [&](EntityId i) { return !Open(0, i); });
      std::erase_if(b, [&](EntityId i) { return !Open(1, i); });
      if (a.size() == 1 && b.size() == 1) {
        MapCones(a[0], b[0]);
        continue;
      }
      // Several: those whose mapped operands agree.
      for (EntityId i : a) {
        const auto fits = [&](EntityId j) { return Open(1, j) && SameMappedOperands(i, j); };
        const auto first = std::ranges::find_if(b, fits);
        if (first != b.end()) MapCones(i, *first);
      }
    }
  }

  bool SameMappedOperands(EntityId a, EntityId b) const {
    std::set<EntityId> images, mapped;
    for (const Labels::Edge& edge : labels_[0]->operands(a)) {
      if (!Open(0, edge.entity)) images.insert(partner_[0][edge.entity]);
    }
    for (const Labels::Edge& edge : labels_[1]->operands(b)) {
      if (!Open(1, edge.entity)) mapped.insert(edge.entity);
    }
    return images == mapped;
  }

  void TopDown() {
    for (EntityId i = labels_[0]->ids().end_id(); i.index-- > 0;) {
      if (Open(0, i)) continue;
      const auto a = labels_[0]->operands(i);
      const auto b = labels_[1]->operands(partner_[0][i]);
      if (a.size() != b.size()) continue;
      bool same_ops = true;
      for (size_t k = 0; k < a.size(); ++k)
        same_ops &= labels_[0]->op[a[k].entity] == labels_[1]->op[b[k].entity];
      for (size_t k = 0; same_ops && k < a.size(); ++k)
        Map(a[k].entity, b[k].entity);
    }
  }

  /// At most `limit` entities below `i`, breadth first.
  std::vector<EntityId> Descendants(int side, EntityId i, size_t limit) const {
    std::vector<EntityId> order{i};
    std::set<EntityId> seen{i};
    for (size_t next = 0; next < order.size() && order.size() <= limit; ++next) {
      for (const Labels::Edge& edge : labels_[side]->operands(order[next])) {
        if (seen.insert(edge.entity).second) order.push_back(edge.entity);
      }
    }
    order.erase(order.begin());
    if (order.size() > limit) order.resize(limit);
    return order;
  }

  std::vector<uint64_t> Ancestors(int side, EntityId i, size_t limit) const {
    std::vector<EntityId> order{i};
    std::set<EntityId> seen{i};
    for (size_t next = 0; next < order.size() && order.size() <= limit; ++next) {
      for (const Labels::Edge& edge : labels_[side]->users(order[next])) {
        if (order.size() <= limit && seen.insert(edge.entity).second) order.push_back(edge.entity);
      }
    }
    std::vector<uint64_t> prints;
    for (size_t k = 1; k < order.size(); ++k)
      prints.push_back(labels_[side]->type[order[k]]);
    return prints;
  }

  double Similarity(EntityId a, EntityId b) const {
    double score = 0;
    const auto operands_a = labels_[0]->operands(a), operands_b = labels_[1]->operands(b);
    for (size_t k = 0; k < std::min(operands_a.size(), operands_b.size()); ++k) {
      const EntityId x = operands_a[k].entity, y = operands_b[k].entity;
      const double weight = 1.0 / static_cast<double>(operands_a.size());
      if (partner_[0][x] == y) {
        score += 0.75 * weight;
      } else if (cone_[0][x] == cone_[1][y]) {
        score += 0.5 * weight;
      }
    }
    if (labels_[0]->type[a] == labels_[1]->type[b]) score += 0.5;
    const std::vector<EntityId> below_a = Descendants(0, a, 200), below_b = Descendants(1, b, 200);
    const std::set<EntityId> set_b(below_b.begin(), below_b.end());
    size_t common = 0;
    for (EntityId i : below_a)
      common += set_b.contains(partner_[0][i]);
    const size_t total = below_a.size() + below_b.size();
    if (total > 0) score += 2.0 * static_cast<double>(common) / static_cast<double>(total);
    return score + LcsShare(Ancestors(0, a, 100), Ancestors(1, b, 100));
  }

  static double LcsShare(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
    if (a.empty() || b.empty()) return 0;
    std::vector<size_t> row(b.size() + 1, 0);
    for (uint64_t x : a) {
      size_t diagonal = 0;
      for (size_t j = 0; j < b.size(); ++j) {
        const size_t above = row[j + 1];
        row[j + 1] = x == b[j] ? diagonal + 1 : std::max(row[j + 1], row[j]);
        diagonal = above;
      }
    }
    return 2.0 * static_cast<double>(row.back()) / static_cast<double>(a.size() + b.size());
  }

  void BottomUp() {
    constexpr size_t kSeeds = 40, kCandidates = 40;
    constexpr double kThreshold = 1.2;
    for (EntityId i : labels_[0]->ids()) {
      if (!Open(0, i) || labels_[0]->operands(i).empty()) continue;
      std::vector<EntityId> order;
      std::set<EntityId> seen;
      for (EntityId below : Descendants(0, i, kSeeds)) {
        const EntityId image = partner_[0][below];
        if (image.valid() && seen.insert(image).second) order.push_back(image);
      }
      std::vector<EntityId> candidates;
      for (size_t next = 0; next < order.size() && order.size() < 8 * kCandidates; ++next) {
        for (const Labels::Edge& edge : labels_[1]->users(order[next])) {
          if (candidates.size() >= kCandidates || !seen.insert(edge.entity).second) continue;
          order.push_back(edge.entity);
          const bool same_op = labels_[0]->op[i] == labels_[1]->op[edge.entity];
          if (same_op && Open(1, edge.entity)) candidates.push_back(edge.entity);
        }
      }
      EntityId best;
      double best_score = kThreshold;
      for (EntityId candidate : candidates) {
        const double score = Similarity(i, candidate);
        if (score > best_score) {
          best = candidate;
          best_score = score;
        }
      }
      if (best.valid()) Map(i, best);
    }
  }

  const Labels* labels_[2];
  Images partner_[2];
  IdVector<EntityId, uint64_t> cone_[2];
  IdVector<EntityId, int> height_[2];
};

}  // namespace

Result<Partners> MatchLikeHloDiff(const Graph& before, const Graph& after) {
  const Listing a(before), b(after);
  const TypeFields fields = KnownTypeFields(a).And(KnownTypeFields(b));
  const Labels labels_a(a, fields), labels_b(b, fields);
  return HloDiff(labels_a, labels_b).Run();
}

}  // namespace strata::bench
