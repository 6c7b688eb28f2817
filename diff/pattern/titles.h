#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "diff/model/graph_diff.h"

namespace strata {

/// Says in words what happened.
///
///     insert aten._to_copy.default (dtype=torch.bfloat16) before aten.mm.default
///     change aten.view.default to aten.reshape.default
///     change args[1] of aten.add.Tensor: 2 → 3
///     replace aten.addmm.default by aten.mm.default, aten.add.Tensor
class Titles {
 public:
  /// REQUIRES: `diff` outlives this and has its relations.
  explicit Titles(const GraphDiff& diff);

  /// What a hunk does. Without `values`, only which operators and fields, not from what to what
  /// and before what.
  std::string OfHunk(const Hunk& hunk, bool values = true) const;

  /// What differs about a pair: `moved, args[1]: 2 → 3`; "" when nothing but a name does.
  static std::string OfPair(PairStatus status, const FieldDiffs& fields);

 private:
  std::string OfUnmatched(const Hunk& hunk, bool values) const;
  std::string OfPairs(const Hunk& hunk, bool values) const;
  std::string Literals(std::span<const EntityId> inserted) const;

  /// Indices into the relations of the diff; -1: none. Empty: there are no relations.
  using RelationOf = IdVector<EntityId, int32_t>;
  const Relation* Find(const RelationOf& relation_of, EntityId id) const;

  const GraphDiff& diff_;
  RelationOf relation_of_before_, relation_of_after_;
};

/// The operator of a node as titles name it: "aten.mm.default", "input", "output".
std::string_view OperatorOf(const Listing& listing, EntityId id);

}  // namespace strata
