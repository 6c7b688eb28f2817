#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diff/patch/patch.h"
#include "ir/graph.h"
#include "ir/text/native_line.h"

namespace strata {

/// A graph of the base, and what the patch makes of it.
struct BaseGraph {
  explicit BaseGraph(const Graph& of)
      : graph(of), nodes(of.nodes().Snapshot()), node_names(static_cast<size_t>(of.node_bound())) {}

  const Graph& graph;
  std::vector<NodeId> nodes;
  int32_t part = -1;                        // of the patch; -1: dropped
  std::vector<const Patch::Step*> step_of;  // by position
  // In the result; "" for what it has not. Of a dropped node, the name that another has now.
  std::vector<std::string> node_names;           // by node
  std::map<int32_t, std::string> element_names;  // by value
};

/// The names of the result, for nodes of the base that stay.
class ResultNames final : public NativeNames {
 public:
  explicit ResultNames(const std::map<int32_t, BaseGraph*>& graphs) : graphs_(graphs) {}

  std::string_view OfNode(const Graph& graph, NodeId node) const override {
    const std::string_view name =
        graphs_.at(graph.id().index)->node_names[static_cast<size_t>(node.index)];
    if (name.empty()) missing_ = graph.name(node);
    return name;
  }
  std::string_view OfElement(const Graph& graph, ValueId element) const override {
    const std::map<int32_t, std::string>& names = graphs_.at(graph.id().index)->element_names;
    const auto found = names.find(element.index);
    if (found != names.end()) return found->second;
    missing_ = graph.value_name(element);
    return {};
  }
  int32_t OfGraph(const Graph& graph) const override {
    const int32_t part = graphs_.at(graph.id().index)->part;
    if (part < 0) missing_ = graph.name_text();
    return part;
  }

  /// What the last line spoke of and is not in the result; "" when there is no such thing.
  std::string_view TakeMissing() const { return std::exchange(missing_, {}); }

 private:
  const std::map<int32_t, BaseGraph*>& graphs_;
  mutable std::string_view missing_;
};

}  // namespace strata
