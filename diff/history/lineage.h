#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "diff/model/graph_diff.h"
#include "ir/ids.h"
#include "ir/module.h"

namespace strata {

/// A node through all graphs of a Lineage.
using LifeId = Id<struct LifeTag>;

/// What happened to a node on the way from one graph to the next.
struct LifeEvent {
  enum class Kind : uint8_t {
    kGiven,    ///< it was there in the first graph
    kBorn,     ///< it came into being
    kKept,     ///< it lived on and differs: `status`, `fields`
    kDeleted,  ///< it is gone
  };
  Kind kind = Kind::kGiven;
  int32_t moment = 0;             ///< of the graph after the event
  PairStatus status;              ///< kKept
  std::vector<FieldDiff> fields;  ///< kKept
  /// kBorn: the nodes it was made from. kDeleted: those that stand for it now.
  std::vector<LifeId> relatives;
  /// How the relatives were found: by a relation of the diff, or by a birth certificate.
  std::optional<RelationKind> relation;
  std::optional<Origin> origin;
};

/// Follows nodes along a pipeline: diffs of consecutive graphs, composed. Moments count the graphs
/// from 0; entities are those of the listings of each diff.
///
///     Lineage lineage(graph_0_listing.size());
///     lineage.Add(diff_of_0_and_1);
///     lineage.Add(diff_of_1_and_2);
///     for (const auto& [before, after, confidence] : lineage.Compose(0, 2)) …
///
/// Keeps nothing of the diffs but numbers and fields; memory is linear in nodes times moments.
class Lineage {
 public:
  /// REQUIRES: the first graph has `size` printed nodes.
  explicit Lineage(int32_t size);

  /// The next graph. `births` (of own passes) tell ancestors exactly and win over relations.
  /// REQUIRES: `diff.before` is the graph of the last moment.
  void Add(const GraphDiff& diff, std::span<const Provenance> births = {});
  /// The next graph is the last one again.
  void AddUnchanged();

  int32_t num_moments() const { return static_cast<int32_t>(life_of_.size()); }
  int32_t num_lives() const { return static_cast<int32_t>(lives_.size()); }

  LifeId LifeAt(int32_t moment, EntityId entity) const {
    return {life_of_[Index(moment)][Index(entity.index)]};
  }
  /// The node at a moment; none: not born yet, or deleted.
  EntityId At(LifeId life, int32_t moment) const;
  /// The first and the last moment of a life.
  int32_t first(LifeId life) const { return lives_[Index(life.index)].first; }
  int32_t last(LifeId life) const { return first(life) + span(life) - 1; }
  /// In order of time; the first is kGiven or kBorn.
  const std::vector<LifeEvent>& events(LifeId life) const {
    return lives_[Index(life.index)].events;
  }
  /// Probability that the nodes of a life at two moments are one: the product along the way.
  /// REQUIRES: it lives at both, and from <= to.
  double Confidence(LifeId life, int32_t from, int32_t to) const;

  struct Link {
    EntityId before, after;
    double confidence = 1;
  };
  /// Which node of a later graph is which of an earlier one; by `before`.
  std::vector<Link> Compose(int32_t from, int32_t to) const;
  /// Nodes born after `from` and gone before `to`: what a comparison of both ends cannot show.
  std::vector<LifeId> Transients(int32_t from, int32_t to) const;

  /// A node of which the composed way and a direct comparison say different things.
  struct Contradiction {
    EntityId before;
    EntityId composed, direct;  ///< none: deleted
  };
  /// REQUIRES: `direct` compares the graphs of these moments.
  std::vector<Contradiction> Contradictions(const GraphDiff& direct, int32_t from,
                                            int32_t to) const;

 private:
  struct Life {
    int32_t first = 0;
    std::vector<int32_t> entities;  // by moment, from `first`
    std::vector<LifeEvent> events;
    std::vector<std::pair<int32_t, double>> doubts;  // (moment, confidence) of unsure steps
  };
  class Relatives;
  static size_t Index(int32_t i) { return static_cast<size_t>(i); }
  int32_t span(LifeId life) const {
    return static_cast<int32_t>(lives_[Index(life.index)].entities.size());
  }
  LifeEvent& AddEvent(int32_t life, LifeEvent::Kind kind);

  std::vector<std::vector<int32_t>> life_of_;  // by moment, by entity
  std::vector<Life> lives_;
};

}  // namespace strata
