#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace strata {

inline constexpr std::string_view kGetItemOp = "_operator.getitem";

/// `a = x[1]`, of a call x that returns a tuple.
struct TakenElement {
  NodeId call;
  int64_t index = 0;
};

/// The element of a tuple that `node` is, where a text has it as a node of its own: elements that
/// are not taken in their order, right after the call, stay nodes (ir/fx/fx.h). None: it is another
/// node, or the tuple has other uses.
std::optional<TakenElement> ElementTakenBy(const Graph& graph, NodeId node);

/// Of a call whose tuple such nodes take apart: the types of its elements, up to the last taken;
/// none for one that is not taken. Empty for other nodes.
std::vector<TypeId> TypesOfTakenElements(const Graph& graph, NodeId call);

}  // namespace strata
