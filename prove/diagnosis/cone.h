#pragma once
#include <compare>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "passes/placement/mesh.h"

namespace strata::prove {

/// A collective as one word: "all_reduce", "tp", "sum".
struct Exchange {
  std::string kind, group, reduce;
  friend auto operator<=>(const Exchange&, const Exchange&) = default;

  std::string Text() const {
    return fmt::format("{}{} over {}", kind, reduce.empty() ? "" : fmt::format("({})", reduce),
                       group);
  }
};

/// What makes a value, back to nodes that the other graph has, too.
struct Cone {
  std::vector<NodeId> inner;                      // not in the other graph
  std::vector<StableId> roots;                    // in order of the operands, with repetition
  std::set<std::pair<StableId, size_t>> results;  // of roots
  std::vector<Exchange> exchanges;                // sorted
  std::vector<Exchange> in_order;                 // the same as they run, by order of operands
  std::vector<std::string> shards;                // "0 tp" of axis_shard, sorted
  bool is_lowered_operator = false;               // has operators that a pass replaced by others
  /// Rows are sorted by expert or token, or an operator of Strata itself becomes others.
  bool has_rows = false;
  std::vector<std::string> computed;  // "mul", "pow": of nodes that compute numbers, sorted
  std::vector<std::string> computed_in_order;  // the same, the last one first
  bool computes = false;                       // has redistributions that are more than collectives
};

/// REQUIRES: `node` is a collective.
Exchange ExchangeOf(const Graph& graph, NodeId node);

/// The group without the number of a copy: "fsdp" of "fsdp#2".
std::string WithoutNumber(std::string_view group);

/// The cone of a node. `others`: ids of the nodes of the other graph. `includes_node`: the node may
/// be a part of its cone; else its operands alone are.
Cone ConeOf(const Graph& graph, const std::set<StableId>& others, const Mesh& mesh, NodeId node,
            bool includes_node);

/// Whether a node computes numbers, and does not only move or make them.
bool ComputesNumbers(const Graph& graph, NodeId node);

}  // namespace strata::prove
