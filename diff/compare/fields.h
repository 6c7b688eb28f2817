#pragma once
#include <vector>

#include "diff/graph/operand_places.h"
#include "diff/match/matching.h"
#include "diff/model/diff_options.h"
#include "diff/model/graph_diff.h"

namespace strata {

/// Compares the nodes of pairs, field by field.
class FieldComparer {
 public:
  /// REQUIRES: all arguments outlive it, and `relations` does not change. `relations` decide which
  /// operand differences are consequences.
  FieldComparer(const Listing& before, const Listing& after, const Matching& matching,
                const std::vector<Relation>& relations, const SymbolNames& symbols,
                const DiffOptions& options);

  /// The differences of a pair in the order of CONTRACTS: target, arguments, operands, type, alias,
  /// module, phase, meta.
  FieldDiffs Compare(EntityId before, EntityId after) const;

 private:
  /// What the operands of a pair explain of its own type.
  struct Consequences {
    bool operand = false;  ///< an operand was replaced, merged, or changed its kind
    bool dtype = false, shape = false, strides = false;  ///< an operand's type differs in it
  };

  /// The attributes hold bodies, and not those that are the same.
  bool BodiesDiffer(EntityId before, EntityId after) const;
  EntityId ImageOf(EntityId before) const { return matching_.partner(kBefore, before); }
  bool Joined(EntityId before, EntityId after) const;
  bool OperandsDiffer(EntityId before, EntityId after) const;
  Consequences ConsequencesFor(EntityId before, EntityId after, const OperandPlaces& places) const;

  void CompareTarget(EntityId before, EntityId after, FieldDiffs& fields) const;
  /// Returns which operands the arguments' text does not show.
  OperandPlaces CompareLiterals(EntityId before, EntityId after, FieldDiffs& fields) const;
  void CompareOperands(EntityId before, EntityId after, const OperandPlaces& places,
                       FieldDiffs& fields) const;
  void CompareTypes(EntityId before, EntityId after, const OperandPlaces& places,
                    FieldDiffs& fields) const;
  void CompareMutation(EntityId before, EntityId after, FieldDiffs& fields) const;
  void CompareAlias(EntityId before, EntityId after, FieldDiffs& fields) const;
  void CompareMetadata(EntityId before, EntityId after, FieldDiffs& fields) const;

  const Listing& before_;
  const Listing& after_;
  const Matching& matching_;
  const SymbolNames& symbols_;
  const bool meta_, module_is_meta_;
  // The body of the other side that most of the body's nodes are in.
  IdVector<ScopeId, ScopeId> body_of_before_, body_of_after_;
  // The relation that joins an entity with nodes of the other side; null: none.
  IdVector<EntityId, const Relation*> relation_of_before_, relation_of_after_;
};

}  // namespace strata
