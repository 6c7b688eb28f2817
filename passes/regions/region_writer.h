#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/rewriter.h"

namespace strata {

/// Makes single nodes of sets of nodes: `strata.fused.default(region_0, x, …, region=True)`, whose
/// body has the nodes with their modules, locations and attributes. Operands from outside are its
/// inputs, constants among them; bodies that members run come along. Views of results that others
/// read stay beside the region.
class RegionWriter {
 public:
  RegionWriter(Module& module, Graph& graph) : module_(module), graph_(graph), rewriter_(graph) {}

  /// Appends the node of `members`, which are in program order; what they read is before the end of
  /// the graph. False: nothing reads them, and they have no node. REQUIRES: no path leaves them and
  /// comes back.
  bool Replace(const std::vector<NodeId>& members, std::string_view name);
  /// Moves a node behind what is appended.
  void Append(NodeId node) { rewriter_.MoveBefore(node, graph_.output()); }
  /// Erases the members and gives the results their names. Once, at the end.
  void Finish();

 private:
  /// What leaves a region.
  struct Exits {
    std::vector<ValueId> outputs;
    std::vector<NodeId> views;  ///< of outputs, that others read; members may have copies
  };
  bool IsMember(NodeId node) const;
  std::vector<ValueId> InputsOf(const std::vector<NodeId>& members) const;
  Exits ExitsOf(const std::vector<NodeId>& members) const;
  std::string NameOf(ValueId value) const;
  void TakeOver(const std::vector<ValueId>& outputs, NodeId region);

  Module& module_;
  Graph& graph_;
  Rewriter rewriter_;
  std::vector<bool> is_member_;           // of the region that is made, by node
  std::vector<NodeId> replaced_;          // readers after what they read, within a region
  std::map<ValueId, std::string> names_;  // of results, when the members are gone
};

}  // namespace strata
