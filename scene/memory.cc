#include "scene/memory.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/id.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

constexpr int32_t kForever = std::numeric_limits<int32_t>::max();

// A copy to memory of the host, and the wait for one; passes/memory/offloadable.h.
constexpr std::string_view kCopyToHost = "ao.offload.default";
constexpr std::string_view kAwaitCopy = "ao.wait_tensor.default";

/// Foreign texts do not contain aliases, but operators imply them.
bool SharesFirstOperand(const Graph& graph, NodeId node) {
  if (graph.node(node).kind != NodeKind::kCall || graph.node(node).num_results != 1) return false;
  const std::string_view op = graph.op(node);
  const OpTraits traits = TraitsOf(op);
  return traits.view || traits.mutates || op == "_operator.getitem" ||
         op == "_c10d_functional.wait_tensor.default" || op == kAwaitCopy;
}

bool IsInput(const Node& node) {
  return node.kind == NodeKind::kPlaceholder || node.kind == NodeKind::kGetAttr;
}

class MemoryProfiler {
 public:
  explicit MemoryProfiler(const Graph& graph)
      : graph_(graph),
        owners_(static_cast<size_t>(graph.value_bound())),
        last_readers_(owners_.size(), -1),
        bytes_(owners_.size(), 0) {}

  MemoryProfile Run() && {
    FindLifetimes();
    AddUp();
    FindHolders();
    return std::move(profile_);
  }

 private:
  void FindLifetimes() {
    int32_t at = 0;
    for (NodeId id : graph_.nodes()) {
      const Node& node = graph_.node(id);
      size_t operand_index = 0;
      graph_.ForEachOperand(id, [&](ValueId operand) {
        // The last reader that a wait names orders nodes only.
        if (operand_index++ == 2 && graph_.op(id) == kAwaitCopy) return;
        int32_t& last = last_readers_[owners_[operand]];
        last = node.kind == NodeKind::kOutput ? kForever : std::max(last, at);
      });
      for (size_t i = 0; i < node.num_results; ++i)
        Define(graph_.result(id, i), node, at);
      ++at;
    }
  }

  /// Owners stand before their aliases, so that of `value` is known.
  void Define(ValueId value, const Node& node, int32_t at) {
    const ValueId owner = StorageOf(graph_, value);
    owners_[value] = owner;
    if (owner != value || graph_.op(graph_.value(value).def) == kCopyToHost) return;
    last_readers_[value] = IsInput(node) ? kForever : at;
    const TypeId type = graph_.value(value).type;
    const auto size = type.valid() ? graph_.module().types().Bytes(type) : std::nullopt;
    if (size) {
      bytes_[value] = *size;
    } else if (node.returns_tuple ? graph_.value(value).num_uses > 0 : !IsInput(node)) {
      ++profile_.unknown;
    }
    if (IsInput(node)) profile_.inputs += bytes_[value];
  }

  /// The bytes that live after each node, and their peak.
  void AddUp() {
    std::vector<int64_t> freed(static_cast<size_t>(graph_.num_nodes()), 0);
    for (ValueId value : IdsOf(bytes_)) {
      const int32_t last = last_readers_[value];
      if (last >= 0 && last != kForever) freed[static_cast<size_t>(last)] += bytes_[value];
    }
    int64_t live = profile_.inputs;
    for (NodeId id : graph_.nodes()) {
      const Node& node = graph_.node(id);
      for (size_t i = 0; !IsInput(node) && i < node.num_results; ++i)
        live += bytes_[graph_.result(id, i)];
      const auto at = static_cast<int32_t>(profile_.live.size());
      profile_.live.push_back(live);
      if (live > profile_.peak || profile_.peak_at < 0) {
        profile_.peak = live;
        profile_.peak_at = at;
      }
      live -= freed[static_cast<size_t>(at)];
    }
  }

  /// The values that live at the peak: made by then, or inputs, which live throughout.
  void FindHolders() {
    int32_t at = 0;
    for (NodeId id : graph_.nodes()) {
      const Node& node = graph_.node(id);
      const bool is_made = at++ <= profile_.peak_at;
      for (size_t i = 0; (is_made || IsInput(node)) && i < node.num_results; ++i) {
        const ValueId value = graph_.result(id, i);
        if (bytes_[value] > 0 && last_readers_[value] >= profile_.peak_at) {
          profile_.holders.push_back({value, bytes_[value]});
        }
      }
    }
    std::ranges::stable_sort(profile_.holders, std::ranges::greater(),
                             &MemoryProfile::Holder::bytes);
  }

  const Graph& graph_;
  IdVector<ValueId, ValueId> owners_;
  // Of owners only.
  IdVector<ValueId, int32_t> last_readers_;  // place of a node in program order; -1: none
  IdVector<ValueId, int64_t> bytes_;
  MemoryProfile profile_;
};

}  // namespace

ValueId StorageOf(const Graph& graph, ValueId value) {
  // Aliases cannot form a circle in a sound graph; a damaged one ends after as many steps as it
  // has values.
  for (int32_t step = 0; step < graph.value_bound(); ++step) {
    ValueId owner = graph.value(value).alias_of;
    if (!owner.valid() && SharesFirstOperand(graph, graph.value(value).def)) {
      const auto args = graph.args(graph.value(value).def);
      if (!args.empty() && args[0].is_value()) owner = args[0].value();
    }
    if (!owner.valid() || owner == value) return value;
    value = owner;
  }
  return value;
}

MemoryProfile ProfileMemory(const Graph& graph) {
  return MemoryProfiler(graph).Run();
}

}  // namespace strata
