#include "diff/match/exchange.h"

#include <algorithm>
#include <compare>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "diff/graph/keyed.h"

namespace strata {
namespace {

constexpr int kExchangeSweeps = 3;
/// Nodes that one exchange may reach.
constexpr size_t kMaxReach = 64;

/// Partners as they would be: of before nodes that change theirs, none for no partner. Ascending;
/// most have one to three nodes.
class Plan {
 public:
  using Entry = std::pair<EntityId, EntityId>;

  /// Null: the node keeps its partner.
  const EntityId* Find(EntityId before) const {
    for (const Entry& entry : entries_) {
      if (entry.first >= before) return entry.first == before ? &entry.second : nullptr;
    }
    return nullptr;
  }
  bool Contains(EntityId before) const { return Find(before) != nullptr; }
  bool Gives(EntityId after) const {
    return std::ranges::find(entries_, after, &Entry::second) != entries_.end();
  }
  void Set(EntityId before, EntityId after) {
    const auto at = std::ranges::lower_bound(entries_, before, {}, &Entry::first);
    if (at != entries_.end() && at->first == before) {
      at->second = after;
    } else {
      entries_.insert(at, {before, after});
    }
  }
  void Erase(EntityId before) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.first == before; });
  }
  void Clear() { entries_.clear(); }
  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  std::span<const Entry> entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

/// Lets nodes of one label exchange their partners where more edges agree then, or as many and the
/// order is kept. A node without a partner takes that of another one, which may take a third one's.
///
///   before  p = mean(x)   q = mean(x)   a = mul(v, p)   b = mul(w, q)      p -> q', q -> p'
///   after   p'= mean(x)   q'= mean(x)   a'= mul(v, p')  b'= mul(w, q')     becomes  p -> p', q ->
///   q'
///
/// One edge of a chain shows it: the exchange goes up and down from there, as far as it does not
/// lose.
class Exchanger {
 public:
  Exchanger(Matching& matching, const ScopePair& scope) : matching_(matching), scope_(scope) {}

  bool Run(uint32_t since) {
    bool any = false;
    // All again in each sweep: what spoke for a node may be gone where its rival stands.
    for (int sweep = 0; sweep < kExchangeSweeps; ++sweep) {
      bool progress = false;
      open_.clear();
      for (EntityId i : matching_.Unmatched(kBefore, scope_))
        open_.push_back({matching_.labels(kBefore).type[i], i});
      open_is_sorted_ = false;
      for (EntityId i : scope_.ids(kBefore)) {
        if (!MayHaveNewReason(i, since)) continue;
        for (EntityId candidate : Candidates(i, {}))
          progress |= MayChange(i, candidate) && Try(i, candidate);
      }
      if (!progress) break;
      any = true;
    }
    return any;
  }

 private:
  static size_t Index(int32_t slot) { return static_cast<size_t>(slot); }

  bool IsFree(Side side, EntityId i) const {
    return matching_.labels(side).kind[i] == EntityKind::kCompute &&
           !matching_.forbidden(side, i) &&
           (!matching_.matched(side, i) || matching_.via(side, i) > Via::kId) &&
           i >= scope_.begin[side] && i < scope_.end[side];
  }

  bool MayMatch(EntityId before, EntityId after) const {
    return matching_.labels(kBefore).type[before] == matching_.labels(kAfter).type[after] &&
           IsFree(kBefore, before) && IsFree(kAfter, after) && !matching_.vetoed(before, after);
  }

  bool MayHaveNewReason(EntityId i, uint32_t since) const {
    const EntityId partner = matching_.partner(kBefore, i);
    return matching_.ChangedSince(kBefore, i, since) ||
           (partner.valid() && matching_.ChangedSince(kAfter, partner, since));
  }

  /// An earlier exchange may have made the pair. Two nodes without partners are for LocalMatcher.
  bool MayChange(EntityId before, EntityId after) const {
    return matching_.partner(kBefore, before) != after &&
           (matching_.matched(kBefore, before) || matching_.matched(kAfter, after));
  }

  EntityId PartnerIn(const Plan& plan, EntityId before) const {
    const EntityId* planned = plan.Find(before);
    return planned != nullptr ? *planned : matching_.partner(kBefore, before);
  }

  /// What the images of a node's users read in its place, other than its own partner.
  std::vector<EntityId> Candidates(EntityId i, const Plan& plan) const {
    std::vector<EntityId> candidates;
    const Labels& labels = matching_.labels(kBefore);
    const EntityId partner = PartnerIn(plan, i);
    const auto users = labels.users(i);
    if (users.size() > Matching::kMaxEdges) return candidates;
    for (const Labels::Edge& user : users) {
      const EntityId image = PartnerIn(plan, user.entity);
      if (!image.valid() || matching_.slotless(kBefore, user.entity)) continue;
      const auto operands = matching_.labels(kAfter).operands(image);
      if (Index(user.slot) >= operands.size()) continue;
      const EntityId read = operands[Index(user.slot)].entity;
      if (read != partner && MayMatch(i, read)) candidates.push_back(read);
    }
    std::ranges::sort(candidates);
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    return candidates;
  }

  /// Adds the exchange of `before`'s partner for `after` to a plan. False: one of the nodes has its
  /// place in it already.
  bool Give(EntityId before, EntityId after, Plan& plan) {
    const EntityId rival = matching_.partner(kAfter, after);
    const EntityId* known = plan.Find(before);
    if (known != nullptr && known->valid()) return false;
    if (rival.valid() && plan.Contains(rival)) return false;
    if (plan.Gives(after)) return false;
    const EntityId left = PartnerIn(plan, before);
    plan.Set(before, after);
    if (rival.valid()) {
      plan.Set(rival, left.valid() && MayMatch(rival, left) ? left : EntityId{});
    } else if (left.valid()) {
      const EntityId heir = Heir(before, left, after, plan);
      if (heir.valid()) plan.Set(heir, left);
    }
    return true;
  }

  /// An unmatched node for what `before` gives up: the next one of its label, on the side that
  /// keeps the order.
  EntityId Heir(EntityId before, EntityId left, EntityId after, const Plan& plan) {
    if (!open_is_sorted_) SortKeys(open_);
    open_is_sorted_ = true;
    const uint64_t type = matching_.labels(kAfter).type[left];
    const auto open = std::ranges::equal_range(open_, type, {}, &Keyed::key);
    const auto fits = [&](const Keyed& candidate) {
      const EntityId i = candidate.entity;
      return !matching_.matched(kBefore, i) && !plan.Contains(i) && MayMatch(i, left);
    };
    const auto at = std::ranges::lower_bound(open, before, {}, &Keyed::entity);
    constexpr std::ptrdiff_t kMost = 8;
    if (left > after) {
      const auto end = at + std::min(kMost, open.end() - at);
      const auto heir = std::find_if(at, end, fits);
      return heir == end ? EntityId{} : heir->entity;
    }
    for (auto it = at; it != open.begin() && at - it < kMost;) {
      if (fits(*--it)) return it->entity;
    }
    return {};
  }

  /// How many more edges agree when a plan becomes a longer one.
  struct Gained {
    int merit = 0;  ///< users that stay as they are count as one: one change redirects them all
    int edges = 0;  ///< all of them
  };

  /// To lose a partner, where no other node finds one, counts as two edges.
  Gained Gain(const Plan& plan, const Plan& longer) const {
    const Labels& labels = matching_.labels(kBefore);
    const auto is_new = [&](EntityId node) {
      return PartnerIn(longer, node) != PartnerIn(plan, node);
    };
    Gained gained;
    int lost = 0;
    for (const auto& [node, partner] : longer.entries()) {
      if (!is_new(node)) continue;
      lost += PartnerIn(plan, node).valid() - partner.valid();
      int gain = 0;
      for (const Labels::Edge& operand : labels.operands(node))
        gain += Agrees(longer, node, operand) - Agrees(plan, node, operand);
      int users = 0;
      for (const Labels::Edge& user : labels.users(node)) {
        if (is_new(user.entity)) continue;
        const Labels::Edge edge{node, user.slot};
        const int change = Agrees(longer, user.entity, edge) - Agrees(plan, user.entity, edge);
        (plan.Contains(user.entity) ? gain : users) += change;
      }
      gained.merit += gain + std::clamp(users, -1, 1);
      gained.edges += gain + users;
    }
    gained.merit -= 2 * std::max(lost, 0);
    gained.edges -= 2 * std::max(lost, 0);
    return gained;
  }

  int NumAgreeing(const Plan& plan, EntityId node) const {
    const Labels& labels = matching_.labels(kBefore);
    int count = 0;
    for (const Labels::Edge& operand : labels.operands(node))
      count += Agrees(plan, node, operand);
    for (const Labels::Edge& user : labels.users(node))
      count += Agrees(plan, user.entity, {node, user.slot});
    return count;
  }

  int Agrees(const Plan& plan, EntityId user, const Labels::Edge& operand) const {
    const EntityId image = PartnerIn(plan, user), read = PartnerIn(plan, operand.entity);
    if (!image.valid() || !read.valid()) return 0;
    if (matching_.slotless(kBefore, user)) return matching_.labels(kAfter).Reads(image, read);
    const auto operands = matching_.labels(kAfter).operands(image);
    return Index(operand.slot) < operands.size() && operands[Index(operand.slot)].entity == read
               ? 1
               : 0;
  }

  /// How good a plan is; to undo a crossing of the order decides between equals.
  struct Worth {
    int merit = 0, uncrossed = 0;
    friend auto operator<=>(const Worth&, const Worth&) = default;
  };

  bool Try(EntityId before, EntityId after) {
    plan_.Clear();
    if (HasHub(before) || !Give(before, after, plan_)) return false;
    return Grow(before);
  }

  /// Makes `plan_` longer for as long as no step loses, and applies the best that it ever was. All
  /// in all no fewer edges agree then: the edit script grows no longer.
  bool Grow(EntityId first) {
    Gained gained = Gain({}, plan_);
    best_.Clear();
    Worth most;
    const auto keep_best = [&] {
      if (gained.merit < most.merit || gained.edges < 0) return;
      const Worth worth{gained.merit, NumUncrossed(plan_)};
      if (worth <= most) return;
      most = worth;
      best_ = plan_;
    };
    keep_best();
    std::vector<EntityId> reached;
    const auto reach = [&](EntityId node) {
      reached.push_back(node);
      const EntityId rival = matching_.partner(kAfter, *plan_.Find(node));
      if (rival.valid() && !PartnerIn(plan_, rival).valid()) reached.push_back(rival);
    };
    reach(first);
    for (size_t next = 0; next < reached.size() && plan_.size() < kMaxReach; ++next) {
      for (const auto& [x, y] : Following(reached[next], plan_)) {
        if (PartnerIn(plan_, x) == y || HasHub(x)) continue;
        longer_ = plan_;
        if (!Give(x, y, longer_)) continue;
        const Gained step = Gain(plan_, longer_);
        if (step.merit < 0) continue;
        std::swap(plan_, longer_);
        gained.merit += step.merit;
        gained.edges += step.edges;
        keep_best();
        reach(x);
      }
    }
    if (best_.empty()) return false;
    Apply(first, best_);
    return true;
  }

  /// What a node of a plan and its new partner read, and who reads them, where these may be the
  /// same, too. Of a node that lost its partner, what it may have instead.
  std::vector<std::pair<EntityId, EntityId>> Following(EntityId node, const Plan& plan) const {
    std::vector<std::pair<EntityId, EntityId>> following;
    const Labels& labels = matching_.labels(kBefore);
    const Labels& others = matching_.labels(kAfter);
    const EntityId partner = *plan.Find(node);
    if (!partner.valid()) {
      for (const EntityId candidate : Candidates(node, plan))
        following.emplace_back(node, candidate);
      return following;
    }
    const auto mine = labels.operands(node), theirs = others.operands(partner);
    for (size_t slot = 0; slot < std::min(mine.size(), theirs.size()); ++slot) {
      const EntityId x = mine[slot].entity, y = theirs[slot].entity;
      if (PartnerIn(plan, x) != y && MayMatch(x, y)) following.emplace_back(x, y);
    }
    if (others.users(partner).size() > Matching::kMaxEdges) return following;
    for (const Labels::Edge& user : labels.users(node)) {
      if (Agrees(plan, user.entity, {node, user.slot}) > 0) continue;
      // The one that reads the partner as this one reads the node.
      EntityId reader;
      bool is_one = true;
      for (const Labels::Edge& other : others.users(partner)) {
        if (other.slot != user.slot || !MayMatch(user.entity, other.entity)) continue;
        is_one &= !reader.valid();
        reader = other.entity;
      }
      if (reader.valid() && is_one) following.emplace_back(user.entity, reader);
    }
    return following;
  }

  /// Pairs of the plan's nodes whose partners stand in the other order than they do: how many less.
  int NumUncrossed(const Plan& plan) const {
    int uncrossed = 0;
    const std::span<const Plan::Entry> entries = plan.entries();
    for (auto a = entries.begin(); a != entries.end(); ++a) {
      for (auto b = std::next(a); b != entries.end(); ++b) {
        const EntityId old_a = matching_.partner(kBefore, a->first);
        const EntityId old_b = matching_.partner(kBefore, b->first);
        if (!old_a.valid() || !old_b.valid() || !a->second.valid() || !b->second.valid()) continue;
        uncrossed += (old_a > old_b ? 1 : 0) - (a->second > b->second ? 1 : 0);
      }
    }
    return uncrossed;
  }

  bool HasHub(EntityId before) const {
    return matching_.labels(kBefore).users(before).size() > Matching::kMaxEdges;
  }

  void Apply(EntityId first, Plan plan) {
    // A successor needs a reason, too.
    const std::vector<Plan::Entry> planned(plan.entries().begin(), plan.entries().end());
    for (const auto& [before, unused] : planned) {
      if (!matching_.matched(kBefore, before) && before != first && NumAgreeing(plan, before) == 0)
        plan.Erase(before);
    }
    for (const auto& [before, unused] : plan.entries()) {
      if (matching_.matched(kBefore, before)) matching_.Unmatch(before);
    }
    for (const auto& [before, after] : plan.entries()) {
      if (after.valid()) matching_.Match(before, after, Via::kLocal, kLocalConfidence);
    }
  }

  Matching& matching_;
  const ScopePair& scope_;
  // Nodes of the before side that were unmatched when the sweep began, by label; sorted when it is
  // asked for.
  std::vector<Keyed> open_;
  bool open_is_sorted_ = false;
  // Of the exchange at hand; here to keep their memory.
  Plan plan_, longer_, best_;
};

}  // namespace

bool Exchange(Matching& matching, const ScopePair& scope, uint32_t since) {
  return Exchanger(matching, scope).Run(since);
}

}  // namespace strata
