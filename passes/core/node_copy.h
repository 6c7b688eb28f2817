#pragma once
#include <string_view>
#include <unordered_map>

#include "ir/graph.h"
#include "ir/rewriter.h"

namespace strata {

/// Values of one graph, and their copies in another.
using CopiedValues = std::unordered_map<ValueId, ValueId>;

/// An argument of a node of `from` for a node of `to`, whose module may be another. REQUIRES:
/// `copies` has each value in it.
Arg CopyArg(const Graph& from, const Arg& arg, Rewriter& to, const CopiedValues& copies);

/// How a copy differs from its original.
struct CopyOptions {
  std::string_view prefix = {};          ///< of the names of the node and of its elements
  StableId stable_id = StableId::kNone;  ///< none: a new one
};

/// Copies a node to the cursor of `to`, a graph of the same module, and adds its results to
/// `copies`. Types, attributes and metadata are those of the original, from which the copy comes in
/// the provenance. A result in the memory of an operand lies in that of the operand's copy: the
/// value that owns the memory need not have been copied. REQUIRES: `copies` has each operand.
NodeId CopyNode(const Graph& from, NodeId node, Rewriter& to, CopiedValues& copies,
                const CopyOptions& options = {});

/// Gives `copy` the attributes of `node`.
void CopyAttributes(const Graph& from, NodeId node, Rewriter& to, NodeId copy);

}  // namespace strata
