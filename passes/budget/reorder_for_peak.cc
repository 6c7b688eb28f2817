#include "passes/budget/reorder_for_peak.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "ir/by_node.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/budget/live_peak.h"
#include "passes/core/written_memory.h"
#include "passes/memory/offloadable.h"

namespace strata {
namespace {

/// Whether a node keeps its place among those of which this is true.
bool IsOrdered(const Graph& graph, NodeId node) {
  const OpTraits traits = TraitsOf(graph.op(node));
  return IsImpure(graph, node) || traits.collective || IsTransfer(graph, node);
}

/// What must come before what, within runs of nodes of one phase.
class Constraints {
 public:
  explicit Constraints(const Graph& graph)
      : graph_(graph),
        run_of_(ByNode(graph, -1)),
        num_before_(ByNode(graph, 0)),
        after_(ByNode<std::set<NodeId>>(graph)) {
    FindRuns();
    AddOperands();
    AddOrdered();
    AddWrites();
  }

  const std::vector<std::vector<NodeId>>& runs() const { return runs_; }
  int32_t num_before(NodeId node) const { return num_before_[node]; }
  const std::set<NodeId>& after(NodeId node) const { return after_[node]; }

 private:
  void FindRuns() {
    bool continues = false;
    for (const NodeId node : graph_.nodes()) {
      if (graph_.node(node).kind != NodeKind::kCall) {
        continues = false;
        continue;
      }
      if (!continues || graph_.node(runs_.back().back()).phase != graph_.node(node).phase)
        runs_.emplace_back();
      runs_.back().push_back(node);
      run_of_[node] = static_cast<int32_t>(runs_.size()) - 1;
      continues = true;
    }
  }

  void Add(NodeId before, NodeId node) {
    if (before == node || run_of_[before] < 0) return;
    if (run_of_[before] != run_of_[node]) return;
    if (after_[before].insert(node).second) ++num_before_[node];
  }

  void AddOperands() {
    for (const NodeId node : graph_.nodes())
      graph_.ForEachOperand(node, [&](ValueId operand) { Add(graph_.value(operand).def, node); });
  }

  void AddOrdered() {
    for (const std::vector<NodeId>& run : runs_) {
      NodeId last;
      for (const NodeId node : run) {
        if (!IsOrdered(graph_, node)) continue;
        if (last.valid()) Add(last, node);
        last = node;
      }
    }
  }

  void AddWrites() {
    const std::set<ValueId> written = WrittenMemory(graph_);
    if (written.empty()) return;
    std::map<ValueId, NodeId> writer;
    std::map<ValueId, std::vector<NodeId>> readers;
    for (const NodeId node : graph_.nodes()) {
      std::set<ValueId> owners;
      graph_.ForEachOperand(node, [&](ValueId operand) {
        if (const ValueId owner = OwnerOf(graph_, operand); written.contains(owner))
          owners.insert(owner);
      });
      for (const ValueId owner : owners) {
        if (writer.contains(owner)) Add(writer[owner], node);
        if (!Mutates(graph_, node)) {
          readers[owner].push_back(node);
          continue;
        }
        for (const NodeId reader : readers[owner])
          Add(reader, node);
        readers[owner].clear();
        writer[owner] = node;
      }
    }
  }

  const Graph& graph_;
  std::vector<std::vector<NodeId>> runs_;
  IdVector<NodeId, int32_t> run_of_;  // -1: it stays where it is
  IdVector<NodeId, int32_t> num_before_;
  IdVector<NodeId, std::set<NodeId>> after_;
};

class ListScheduler {
 public:
  ListScheduler(const Graph& graph, const Constraints& constraints)
      : graph_(graph),
        constraints_(constraints),
        position_(PositionsOf(graph)),
        left_(ByValue(graph, 0)) {
    for (const NodeId node : graph.nodes())
      for (const ValueId owner : OwnersReadBy(node))
        ++left_[owner];
  }

  /// A new order of the nodes of each run.
  std::vector<std::vector<NodeId>> Run() {
    std::vector<std::vector<NodeId>> ordered;
    for (const std::vector<NodeId>& run : constraints_.runs())
      ordered.push_back(Order(run));
    return ordered;
  }

 private:
  std::set<ValueId> OwnersReadBy(NodeId node) const {
    std::set<ValueId> owners;
    graph_.ForEachOperand(node, [&](ValueId operand) { owners.insert(OwnerOf(graph_, operand)); });
    return owners;
  }

  std::vector<NodeId> Order(const std::vector<NodeId>& run) {
    std::map<NodeId, int32_t> waiting;
    std::vector<NodeId> ready, ordered;
    for (const NodeId node : run) {
      waiting[node] = constraints_.num_before(node);
      if (waiting[node] == 0) ready.push_back(node);
    }
    while (!ready.empty()) {
      const auto next = std::ranges::min_element(
          ready, {}, [&](NodeId node) { return std::pair(AddedBytes(node), position_[node]); });
      const NodeId node = *next;
      ready.erase(next);
      ordered.push_back(node);
      for (const ValueId owner : OwnersReadBy(node))
        --left_[owner];
      for (const NodeId after : constraints_.after(node))
        if (--waiting[after] == 0) ready.push_back(after);
    }
    return ordered;
  }

  int64_t AddedBytes(NodeId node) const {
    int64_t bytes = 0;
    for (size_t i = 0; i < graph_.node(node).num_results; ++i)
      bytes += OwnLiveBytes(graph_, graph_.result(node, i));
    for (const ValueId owner : OwnersReadBy(node))
      if (left_[owner] == 1) bytes -= OwnLiveBytes(graph_, owner);
    return bytes;
  }

  const Graph& graph_;
  const Constraints& constraints_;
  IdVector<NodeId, int32_t> position_;
  IdVector<ValueId, int32_t> left_;  // of owners: nodes that still read it
};

bool ReorderIn(Graph& graph) {
  const Constraints constraints(graph);
  const std::vector<std::vector<NodeId>> ordered = ListScheduler(graph, constraints).Run();
  const IdVector<NodeId, int32_t> before = PositionsOf(graph);
  IdVector<NodeId, int32_t> after = before;
  for (size_t run = 0; run < ordered.size(); ++run) {
    const int32_t first = before[constraints.runs()[run].front()];
    for (size_t i = 0; i < ordered[run].size(); ++i)
      after[ordered[run][i]] = first + static_cast<int32_t>(i);
  }
  if (LivePeakBytes(graph, after) >= LivePeakBytes(graph, before)) return false;
  Rewriter rewriter(graph);
  for (size_t run = 0; run < ordered.size(); ++run) {
    const NodeId end = graph.node(constraints.runs()[run].back()).next;
    for (const NodeId node : ordered[run])
      rewriter.MoveBefore(node, end);
  }
  return true;
}

}  // namespace

Result<Changed> ReorderForPeak::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs())
    changed |= ReorderIn(module.graph(id));
  return Changed(changed);
}

}  // namespace strata
