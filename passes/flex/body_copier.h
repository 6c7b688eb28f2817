#pragma once
#include "ir/rewriter.h"
#include "passes/core/node_copy.h"

namespace strata {

/// Copies nodes of a body into a graph of another module. Types are not copied.
class BodyCopier {
 public:
  BodyCopier(const Graph& from, Rewriter& to) : from_(from), to_(to) {}

  /// A copy of a placeholder or call whose operands were copied before.
  NodeId Copy(NodeId node);
  /// The copy of a value. REQUIRES: its node was copied.
  ValueId ValueOf(ValueId value) const { return values_.at(value); }
  Arg Convert(const Arg& arg) { return CopyArg(from_, arg, to_, values_); }

 private:
  const Graph& from_;
  Rewriter& to_;
  CopiedValues values_;
};

}  // namespace strata
