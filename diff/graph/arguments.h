#pragma once
#include <span>
#include <string>
#include <vector>

#include "diff/graph/listing.h"
#include "ir/arg.h"

namespace strata {

/// A place in the arguments of a printed node: a literal or an operand.
struct Leaf {
  std::string path;      ///< "args[1][0]", "kwargs.dtype"
  std::string text;      ///< as FX prints it; of an operand its name
  std::string skeleton;  ///< the text with `_` for operands inside a call: what it says itself
  EntityId operand;      ///< valid: an operand
};

/// All leaves in flattened order (positional, then keyword). A call (`slice(None, x, 2)`) is a
/// literal, and the operands inside it follow it. An element reads `_operator.getitem(node, k)`.
/// Bodies are not leaves of attributes, which are named by them.
std::vector<Leaf> LeavesOf(const Listing& listing, EntityId id);

/// Whether none is a literal.
bool AreOperands(std::span<const Leaf> leaves);

/// Operands in flattened order, with repetitions.
std::vector<EntityId> OperandsOf(const Listing& listing, EntityId id);

/// A literal as FX prints it: `2`, `1e-05`, `torch.float32`, `device(type='cpu')`, `[1, 2]`.
std::string LiteralText(const Graph& graph, const Arg& arg);
/// The same with `_` for operands.
std::string SkeletonText(const Graph& graph, const Arg& arg);

}  // namespace strata
