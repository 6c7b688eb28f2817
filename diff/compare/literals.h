#pragma once
#include <span>
#include <vector>

#include "diff/graph/arguments.h"
#include "diff/graph/operand_places.h"
#include "diff/graph/symbols.h"
#include "diff/model/graph_diff.h"

namespace strata {

/// A node of a listing, with its leaves.
struct ListedLeaves {
  const Listing& listing;
  EntityId id;
  std::vector<Leaf> leaves = LeavesOf(listing, id);
};

/// Adds the literals in which two nodes differ, in the order of printed arguments. A literal that
/// became an operand, or was one, is one field with the operand's name: `places` decides.
void AddLiteralDiffs(const ListedLeaves& before, const ListedLeaves& after,
                     const OperandPlaces& places, const SymbolNames& symbols, FieldDiffs& fields);

/// Adds arguments that differ in something that no leaf shows: list against tuple, an operand given
/// by position against one given by name. REQUIRES: neither node is an element of a tuple.
void AddContainerDiffs(const ListedLeaves& before, const ListedLeaves& after, FieldDiffs& fields);

}  // namespace strata
