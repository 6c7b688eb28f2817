#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "prove/foreign/attempt.h"
#include "prove/foreign/evaluation.h"
#include "prove/foreign/relation.h"

namespace strata::prove {

/// A result of a node of a compilation.
struct Place {
  Part part = Part::kForward;
  NodeId node;
  size_t result = 0;
  friend bool operator<(const Place& a, const Place& b) {
    return std::tuple(a.part, a.node.index, a.result) < std::tuple(b.part, b.node.index, b.result);
  }
  friend bool operator==(const Place&, const Place&) = default;
};

/// All values of one device, to be found by their elements.
class ValueTable {
 public:
  void Add(Part part, NodeId node, std::span<const Value> results);
  /// The first place that has this value; none: no place has it.
  std::optional<Place> Find(const Tensor& tensor) const;

 private:
  std::unordered_map<uint64_t, Place> places_;
};

/// What of the values of one device ranks hold: pairs values of graphs that have nothing else in
/// common, across decompositions and fused tensors.
class Lineage {
 public:
  struct Origin {
    Place place;  ///< on one device
    Relation relation;
  };

  Lineage(const ValueTable& table, const Mesh& mesh) : table_(table), mesh_(mesh) {}

  /// Looks for the results of a node on all ranks.
  void Add(Part part, NodeId node, std::span<const Values> results);
  /// Of what ranks hold, times `factor`; none: one device has no such value.
  std::optional<Origin> OriginOfMultiple(std::span<const Value> parts, Residue factor) const;
  /// Null: what ranks hold there is no value of one device.
  const Origin* OriginOf(const Place& place) const;
  /// Whether ranks hold the value at a place of one device.
  bool IsHeld(const Place& place) const { return held_.contains(place); }

 private:
  std::optional<Origin> Find(std::span<const Value> parts) const;

  const ValueTable& table_;
  const Mesh& mesh_;
  std::map<Place, Origin> origins_;
  std::set<Place> held_;
};

/// How ranks hold a tensor, in whichever way; none: they do not.
std::optional<Relation> RelationTo(const Value& whole, std::span<const Value> parts,
                                   const Mesh& mesh);

}  // namespace strata::prove
