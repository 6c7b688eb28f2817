#include "diff/history/lineage.h"

#include <algorithm>
#include <unordered_map>

namespace strata {

/// The nodes that a new node was made from, and the nodes that replace a deleted one.
class Lineage::Relatives {
 public:
  struct Answer {
    std::vector<NodeHistoryId> histories;
    std::optional<RelationKind> relation;
    std::optional<Origin> origin;
  };

  /// `before` and `after` are the histories of the entities of each side.
  Relatives(const GraphDiff& diff, std::span<const Provenance> provenance,
            const IdVector<EntityId, NodeHistoryId>& before,
            const IdVector<EntityId, NodeHistoryId>& after)
      : diff_(diff), histories_{&before, &after} {
    for (const Relation& relation : diff.relations) {
      for (EntityId id : relation.before)
        relation_of_[0].emplace(id, &relation);
      for (EntityId id : relation.after)
        relation_of_[1].emplace(id, &relation);
    }
    if (provenance.empty()) return;
    for (const Provenance& record : provenance)
      provenance_.emplace(record.node, &record);
    MapIds(diff.before, *histories_[0]);
    MapIds(diff.after, *histories_[1]);
    for (EntityId id : diff.inserted) {
      const Answer parents = ParentsOf(id);
      if (!parents.origin) continue;
      for (NodeHistoryId parent : parents.histories)
        children_[parent].push_back((*histories_[1])[id]);
    }
  }

  Answer ParentsOf(EntityId inserted) const {
    const auto record = provenance_.find(StableIdOf(diff_.after, inserted));
    if (record != provenance_.end() && !record->second->from.empty()) {
      Answer answer;
      answer.origin = record->second->origin;
      Collect(*record->second, 0, answer.histories);
      return answer;
    }
    return Related(1, inserted);
  }

  Answer SuccessorsOf(EntityId deleted) const {
    const auto children = children_.find((*histories_[0])[deleted]);
    if (children != children_.end()) return {children->second, std::nullopt, Origin::kReplaced};
    return Related(0, deleted);
  }

 private:
  static StableId StableIdOf(const Listing& listing, EntityId id) {
    return listing.graph(id).node(listing[id].node).stable_id;
  }

  void MapIds(const Listing& listing, const IdVector<EntityId, NodeHistoryId>& histories) {
    for (EntityId id : IdsOf(histories)) {
      if (!listing[id].element.valid())
        history_of_id_.emplace(StableIdOf(listing, id), histories[id]);
    }
  }

  /// An ancestor that no graph contains (the pass created and removed it) is replaced by its own
  /// ancestors.
  void Collect(const Provenance& record, int depth, std::vector<NodeHistoryId>& histories) const {
    constexpr int kMaxDepth = 16;
    for (StableId id : record.from) {
      if (const auto history = history_of_id_.find(id); history != history_of_id_.end()) {
        if (std::ranges::find(histories, history->second) == histories.end())
          histories.push_back(history->second);
      } else if (const auto older = provenance_.find(id);
                 older != provenance_.end() && depth < kMaxDepth) {
        Collect(*older->second, depth + 1, histories);
      }
    }
  }

  Answer Related(size_t side, EntityId id) const {
    const auto found = relation_of_[side].find(id);
    if (found == relation_of_[side].end()) return {};
    const Relation& relation = *found->second;
    Answer answer{{}, relation.kind, std::nullopt};
    for (EntityId other : side == 0 ? relation.after : relation.before)
      answer.histories.push_back((*histories_[1 - side])[other]);
    return answer;
  }

  const GraphDiff& diff_;
  std::array<const IdVector<EntityId, NodeHistoryId>*, 2> histories_;
  std::array<std::unordered_map<EntityId, const Relation*>, 2> relation_of_;
  std::unordered_map<StableId, const Provenance*> provenance_;
  std::unordered_map<StableId, NodeHistoryId> history_of_id_;
  std::unordered_map<NodeHistoryId, std::vector<NodeHistoryId>> children_;
};

Lineage::Lineage(int32_t size) : histories_(static_cast<size_t>(size)) {
  IdVector<EntityId, NodeHistoryId>& first = histories_of_.emplace_back(histories_.size());
  for (EntityId id : IdsOf(first)) {
    first[id] = NodeHistoryId{id.index};
    histories_[first[id]].entities = {id};
    histories_[first[id]].events.emplace_back();
  }
}

NodeEvent& Lineage::AddEvent(NodeHistoryId history, NodeEvent::Kind kind) {
  NodeEvent& event = histories_[history].events.emplace_back();
  event.kind = kind;
  event.snapshot = num_snapshots() - 1;
  return event;
}

void Lineage::Add(const GraphDiff& diff, std::span<const Provenance> provenance) {
  STRATA_CHECK(diff.pair_of_before.size() == histories_of_.back().size());
  histories_of_.emplace_back(diff.pair_of_after.size());
  const int32_t snapshot = num_snapshots() - 1;
  const IdVector<EntityId, NodeHistoryId>& before = HistoriesAt(snapshot - 1);
  IdVector<EntityId, NodeHistoryId>& after = histories_of_.back();
  for (const Pair& pair : diff.pairs) {
    const NodeHistoryId id = before[pair.before];
    after[pair.after] = id;
    NodeHistory& history = histories_[id];
    history.entities.push_back(pair.after);
    if (pair.confidence < 1) history.doubts.emplace_back(snapshot, pair.confidence);
    if (pair.status.same()) continue;
    NodeEvent& event = AddEvent(id, NodeEvent::Kind::kKept);
    event.status = pair.status;
    event.fields = pair.fields;
  }
  for (EntityId id : diff.inserted)
    after[id] = histories_.Add({.first = snapshot, .entities = {id}, .events = {}, .doubts = {}});
  const Relatives relatives(diff, provenance, before, after);
  const auto set_relatives = [](NodeEvent& event, Relatives::Answer answer) {
    event.relatives = std::move(answer.histories);
    event.relation = answer.relation;
    event.origin = answer.origin;
  };
  for (EntityId id : diff.inserted)
    set_relatives(AddEvent(after[id], NodeEvent::Kind::kCreated), relatives.ParentsOf(id));
  for (EntityId id : diff.deleted)
    set_relatives(AddEvent(before[id], NodeEvent::Kind::kDeleted), relatives.SuccessorsOf(id));
}

void Lineage::AddUnchanged() {
  const IdVector<EntityId, NodeHistoryId> last = histories_of_.back();
  for (EntityId id : IdsOf(last))
    histories_[last[id]].entities.push_back(id);
  histories_of_.push_back(last);
}

EntityId Lineage::At(NodeHistoryId history, int32_t snapshot) const {
  const int32_t age = snapshot - first(history);
  if (age < 0 || age >= span(history)) return {};
  return histories_[history].entities[static_cast<size_t>(age)];
}

double Lineage::Confidence(NodeHistoryId history, int32_t from, int32_t to) const {
  double confidence = 1;
  for (const auto& [snapshot, sure] : histories_[history].doubts) {
    if (snapshot > from && snapshot <= to) confidence *= sure;
  }
  return confidence;
}

std::vector<Lineage::Link> Lineage::Compose(int32_t from, int32_t to) const {
  std::vector<Link> links;
  for (EntityId before : IdsOf(HistoriesAt(from))) {
    const NodeHistoryId history = NodeHistoryAt(from, before);
    const EntityId after = At(history, to);
    if (after.valid()) links.push_back({before, after, Confidence(history, from, to)});
  }
  return links;
}

std::vector<NodeHistoryId> Lineage::Transients(int32_t from, int32_t to) const {
  std::vector<NodeHistoryId> transients;
  for (NodeHistoryId history : IdsOf(histories_)) {
    if (first(history) > from && last(history) < to) transients.push_back(history);
  }
  return transients;
}

std::vector<Lineage::Contradiction> Lineage::Contradictions(const GraphDiff& direct, int32_t from,
                                                            int32_t to) const {
  std::vector<Contradiction> contradictions;
  for (EntityId before : direct.before.ids()) {
    const EntityId composed = At(NodeHistoryAt(from, before), to);
    const PairId pair = direct.pair_of_before[before];
    const EntityId other = pair.valid() ? direct.pairs[pair].after : EntityId{};
    if (composed != other) contradictions.push_back({before, composed, other});
  }
  return contradictions;
}

}  // namespace strata
