#include "prove/layers/alike_values.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/ops.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/storage_sets.h"
#include "prove/layers/node_comparison.h"

namespace strata::prove {
namespace {

/// Which operands have the elements that they were made with, while nodes are visited in order.
class Writes {
 public:
  explicit Writes(const Graph& graph) : graph_(graph), storages_(graph) {}

  bool ReadsUnchanged(NodeId node) {
    bool is_unchanged = true;
    graph_.ForEachOperand(node, [&](ValueId value) {
      const auto written = writes_.find(storages_.Find(value));
      is_unchanged = is_unchanged && (written == writes_.end() || written->second <= made_[value]);
    });
    return is_unchanged;
  }

  void Add(NodeId node) {
    ++time_;
    for (size_t i = 0; i < graph_.node(node).num_results; ++i)
      made_[graph_.result(node, i)] = time_;
    for (const ValueId value : WrittenBy(graph_, node))
      writes_[storages_.Find(value)] = time_;
  }

 private:
  const Graph& graph_;
  StorageSets storages_;
  int64_t time_ = 0;
  std::unordered_map<int32_t, int64_t> writes_;  // by storage, the last
  std::map<ValueId, int64_t> made_;
};

}  // namespace

AlikeValues::AlikeValues(const Graph& graph) {
  for (int32_t i = 0; i < graph.value_bound(); ++i)
    first_.Add(ValueId{i});
  NodeComparison nodes(graph, graph, [&](ValueId x, ValueId y) { return first_[x] == first_[y]; });
  using CallKey = std::pair<StrId, std::vector<ValueId>>;
  std::map<CallKey, std::vector<NodeId>> calls;  // that are different, by operator and operands
  Writes writes(graph);
  for (const NodeId node : graph.nodes()) {
    const bool is_function = graph.node(node).kind == NodeKind::kCall &&
                             !DrawsNumbers(graph.op(node)) && writes.ReadsUnchanged(node);
    writes.Add(node);
    if (!is_function) continue;
    CallKey call{graph.node(node).op, {}};
    graph.ForEachOperand(node, [&](ValueId value) { call.second.push_back(first_[value]); });
    std::vector<NodeId>& others = calls[std::move(call)];
    const auto same =
        std::ranges::find_if(others, [&](NodeId other) { return nodes.IsSame(other, node); });
    if (same == others.end()) {
      others.push_back(node);
      continue;
    }
    for (size_t i = 0; i < graph.node(node).num_results; ++i)
      first_[graph.result(node, i)] = first_[graph.result(*same, i)];
  }
}

}  // namespace strata::prove
