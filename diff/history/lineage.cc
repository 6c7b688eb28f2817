#include "diff/history/lineage.h"

#include <algorithm>
#include <unordered_map>

namespace strata {

/// Who a new node was made from, and who stands for a deleted one.
class Lineage::Relatives {
 public:
  struct Answer {
    std::vector<LifeId> lives;
    std::optional<RelationKind> relation;
    std::optional<Origin> origin;
  };

  /// `before` and `after` are the lives of the entities of both sides.
  Relatives(const GraphDiff& diff, std::span<const Provenance> births,
            const std::vector<int32_t>& before, const std::vector<int32_t>& after)
      : diff_(diff), lives_{&before, &after} {
    for (size_t i = 0; i < diff.relations.size(); ++i) {
      for (EntityId id : diff.relations[i].before)
        relation_of_[0].emplace(id.index, static_cast<int32_t>(i));
      for (EntityId id : diff.relations[i].after)
        relation_of_[1].emplace(id.index, static_cast<int32_t>(i));
    }
    if (births.empty()) return;
    for (const Provenance& birth : births)
      births_.emplace(birth.node, &birth);
    MapIds(diff.before, *lives_[0]);
    MapIds(diff.after, *lives_[1]);
    for (EntityId id : diff.inserted) {
      const Answer parents = ParentsOf(id);
      if (!parents.origin) continue;
      for (LifeId parent : parents.lives)
        children_[parent.index].push_back({(*lives_[1])[Index(id.index)]});
    }
  }

  Answer ParentsOf(EntityId inserted) const {
    const auto birth = births_.find(StableIdOf(diff_.after, inserted));
    if (birth != births_.end() && !birth->second->from.empty()) {
      Answer answer;
      answer.origin = birth->second->origin;
      Collect(*birth->second, 0, answer.lives);
      return answer;
    }
    return Related(1, inserted);
  }

  Answer HeirsOf(EntityId deleted) const {
    const auto children = children_.find((*lives_[0])[Index(deleted.index)]);
    if (children != children_.end()) return {children->second, std::nullopt, Origin::kReplaced};
    return Related(0, deleted);
  }

 private:
  static StableId StableIdOf(const Listing& listing, EntityId id) {
    return listing.graph(id).node(listing[id].node).stable_id;
  }

  void MapIds(const Listing& listing, const std::vector<int32_t>& lives) {
    for (EntityId id{0}; id.index < listing.size(); ++id.index) {
      if (!listing[id].element.valid())
        life_of_id_.emplace(StableIdOf(listing, id), lives[Index(id.index)]);
    }
  }

  /// Ancestors that no graph shows (made and removed by the same pass) are passed over to theirs.
  void Collect(const Provenance& birth, int depth, std::vector<LifeId>& lives) const {
    constexpr int kMaxDepth = 16;
    for (StableId id : birth.from) {
      if (const auto life = life_of_id_.find(id); life != life_of_id_.end()) {
        if (std::ranges::find(lives, LifeId{life->second}) == lives.end())
          lives.push_back({life->second});
      } else if (const auto older = births_.find(id); older != births_.end() && depth < kMaxDepth) {
        Collect(*older->second, depth + 1, lives);
      }
    }
  }

  Answer Related(size_t side, EntityId id) const {
    const auto found = relation_of_[side].find(id.index);
    if (found == relation_of_[side].end()) return {};
    const Relation& relation = diff_.relations[Index(found->second)];
    Answer answer{{}, relation.kind, std::nullopt};
    for (EntityId other : side == 0 ? relation.after : relation.before)
      answer.lives.push_back({(*lives_[1 - side])[Index(other.index)]});
    return answer;
  }

  const GraphDiff& diff_;
  std::array<const std::vector<int32_t>*, 2> lives_;  // by entity
  std::array<std::unordered_map<int32_t, int32_t>, 2> relation_of_;
  std::unordered_map<StableId, const Provenance*> births_;
  std::unordered_map<StableId, int32_t> life_of_id_;
  std::unordered_map<int32_t, std::vector<LifeId>> children_;  // by life
};

Lineage::Lineage(int32_t size) : lives_(Index(size)) {
  std::vector<int32_t>& first = life_of_.emplace_back(Index(size));
  for (int32_t i = 0; i < size; ++i) {
    first[Index(i)] = i;
    lives_[Index(i)].entities = {i};
    lives_[Index(i)].events.emplace_back();
  }
}

LifeEvent& Lineage::AddEvent(int32_t life, LifeEvent::Kind kind) {
  LifeEvent& event = lives_[Index(life)].events.emplace_back();
  event.kind = kind;
  event.moment = num_moments() - 1;
  return event;
}

void Lineage::Add(const GraphDiff& diff, std::span<const Provenance> births) {
  STRATA_CHECK(static_cast<size_t>(diff.before.size()) == life_of_.back().size());
  life_of_.emplace_back(Index(diff.after.size()), -1);
  const int32_t moment = num_moments() - 1;
  const std::vector<int32_t>& before = life_of_[Index(moment - 1)];
  std::vector<int32_t>& after = life_of_[Index(moment)];
  for (const Pair& pair : diff.pairs) {
    const int32_t index = before[Index(pair.before.index)];
    after[Index(pair.after.index)] = index;
    Life& life = lives_[Index(index)];
    life.entities.push_back(pair.after.index);
    if (pair.confidence < 1) life.doubts.emplace_back(moment, pair.confidence);
    if (pair.status.same()) continue;
    LifeEvent& event = AddEvent(index, LifeEvent::Kind::kKept);
    event.status = pair.status;
    event.fields = pair.fields;
  }
  for (EntityId id : diff.inserted) {
    after[Index(id.index)] = num_lives();
    Life& life = lives_.emplace_back();
    life.first = moment;
    life.entities = {id.index};
  }
  const Relatives relatives(diff, births, before, after);
  const auto tell = [](LifeEvent& event, Relatives::Answer answer) {
    event.relatives = std::move(answer.lives);
    event.relation = answer.relation;
    event.origin = answer.origin;
  };
  for (EntityId id : diff.inserted)
    tell(AddEvent(after[Index(id.index)], LifeEvent::Kind::kBorn), relatives.ParentsOf(id));
  for (EntityId id : diff.deleted)
    tell(AddEvent(before[Index(id.index)], LifeEvent::Kind::kDeleted), relatives.HeirsOf(id));
}

void Lineage::AddUnchanged() {
  life_of_.push_back(life_of_.back());
  const std::vector<int32_t>& lives = life_of_.back();
  for (size_t i = 0; i < lives.size(); ++i)
    lives_[Index(lives[i])].entities.push_back(static_cast<int32_t>(i));
}

EntityId Lineage::At(LifeId life, int32_t moment) const {
  const int32_t age = moment - first(life);
  if (age < 0 || age >= span(life)) return {};
  return {lives_[Index(life.index)].entities[Index(age)]};
}

double Lineage::Confidence(LifeId life, int32_t from, int32_t to) const {
  double confidence = 1;
  for (const auto& [moment, sure] : lives_[Index(life.index)].doubts) {
    if (moment > from && moment <= to) confidence *= sure;
  }
  return confidence;
}

std::vector<Lineage::Link> Lineage::Compose(int32_t from, int32_t to) const {
  std::vector<Link> links;
  for (EntityId before{0}; Index(before.index) < life_of_[Index(from)].size(); ++before.index) {
    const LifeId life = LifeAt(from, before);
    const EntityId after = At(life, to);
    if (after.valid()) links.push_back({before, after, Confidence(life, from, to)});
  }
  return links;
}

std::vector<LifeId> Lineage::Transients(int32_t from, int32_t to) const {
  std::vector<LifeId> transients;
  for (LifeId life{0}; life.index < num_lives(); ++life.index) {
    if (first(life) > from && last(life) < to) transients.push_back(life);
  }
  return transients;
}

std::vector<Lineage::Contradiction> Lineage::Contradictions(const GraphDiff& direct, int32_t from,
                                                            int32_t to) const {
  std::vector<Contradiction> contradictions;
  for (EntityId before{0}; before.index < direct.before.size(); ++before.index) {
    const EntityId composed = At(LifeAt(from, before), to);
    const int32_t pair = direct.pair_of_before[Index(before.index)];
    const EntityId other = pair < 0 ? EntityId{} : direct.pairs[Index(pair)].after;
    if (composed != other) contradictions.push_back({before, composed, other});
  }
  return contradictions;
}

}  // namespace strata
