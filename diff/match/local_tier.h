#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "diff/match/local.h"

namespace strata {

/// One kind of evidence. Candidates are unmatched neighbours of a matched pair; those with equal
/// keys on both sides are the same node if there is one on each side.
struct LocalMatcher::Tier {
  enum class Where : uint8_t { kUsers, kOperands, kBoth };
  enum class Key : uint8_t {
    kAllEdges,  ///< all operands and all users are matched, and the same
    kAllOperands,
    kOperandSet,  ///< all operands, in any order
    kAllUsers,
    kThroughOperands,  ///< all operands, seen through unary nodes
    kThroughUsers,     ///< all users, seen through unary nodes
    kEdge,             ///< the edge to the matched pair alone
  };
  Where where;
  Key key;
  bool choose;  ///< several candidates: by agreeing edges, then by place in the order
  std::optional<LabelKind> label;  ///< none: any operator of the same kind
  double confidence;

  /// Steps that are taken through unmatched nodes with one operand: inserted casts, copies, waits.
  static constexpr int kMaxSteps = 3;
  /// How far stacked nodes of one label are counted.
  static constexpr int kMaxStack = 8;
};

}  // namespace strata
