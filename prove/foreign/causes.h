#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "prove/foreign/lineage.h"
#include "prove/foreign/program.h"

namespace strata::prove {

/// Where a difference begins.
struct Cause {
  Part part = Part::kForward;
  NodeId node;                ///< of the ranks
  std::optional<Place> twin;  ///< on one device: what the node should compute; none: not known
  friend bool operator==(const Cause&, const Cause&) = default;
};

/// Finds the node from which on ranks hold no values of one device. Most programs have such nodes
/// that are right, as where one device has no mask of a rank's rows: a node that one device has,
/// too, goes before those that it has not, and one that computes something before one that only
/// moves elements.
class CauseFinder {
 public:
  /// REQUIRES: all outlive this. The programs are those of one device and of the first rank.
  CauseFinder(const CompiledProgram& single, const CompiledProgram& rank, const Lineage& lineage)
      : single_(single), rank_(rank), lineage_(lineage) {}

  /// Of a value that ranks do not hold as they should. None: they hold a value of one device there.
  std::optional<Cause> CauseOf(Part part, ValueId value) const;

  /// The value at a place of the first rank's graph that a value is.
  Place PlaceOf(Part part, ValueId value) const;

 private:
  using Nodes = std::set<std::pair<Part, int32_t>>;

  void Visit(Part part, ValueId value, Nodes& region) const;
  bool ReadsHeldValues(Part part, NodeId node) const;
  std::optional<Place> TwinOf(Part part, NodeId node) const;
  std::vector<Place> OriginsOfOperands(Part part, NodeId node) const;
  /// What forward saved for an input of backward; none: it is another input.
  std::optional<ValueId> SavedAs(NodeId placeholder) const;

  const CompiledProgram& single_;
  const CompiledProgram& rank_;
  const Lineage& lineage_;
};

}  // namespace strata::prove
