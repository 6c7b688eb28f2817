#include "passes/memory/recompute.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/by_node.h"
#include "ir/ops.h"
#include "ir/rewriter.h"
#include "passes/core/viewed_operands.h"
#include "passes/core/written_memory.h"
#include "passes/memory/offloadable.h"
#include "passes/memory/replay.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

IdVector<NodeId, bool> RecomputableNodes(const Graph& graph) {
  IdVector<NodeId, bool> recomputable = ByNode<bool>(graph);
  for (const NodeId node : graph.nodes())
    recomputable[node] = IsRecomputable(graph, node);
  return recomputable;
}

Status CheckTags(const Graph& graph, const Replay& replay,
                 const IdVector<NodeId, bool>& recomputable) {
  for (const NodeId node : graph.nodes()) {
    if (!recomputable[node]) continue;
    if (TraitsOf(graph.op(node)).random) {
      return Error("random numbers cannot be recomputed: graph {}: node {} ({}): tag it MUST_SAVE",
                   graph.name_text(), graph.name(node), graph.op(node));
    }
    if (!replay.CanCopy(node)) {
      return Error(
          "memory is written after or beside what shall be recomputed: graph {}: node {} ({}): tag "
          "it MUST_SAVE",
          graph.name_text(), graph.name(node), graph.op(node));
    }
  }
  return Ok();
}

/// Backward nodes without a forward call between them.
using Region = std::vector<NodeId>;

/// The regions after forward and backward of the loss and the output layer. What follows later of
/// their backward (casts of gradients) is like that of other modules.
std::vector<Region> BackwardRegions(const Graph& graph) {
  std::vector<Region> regions(1);
  bool in_loss = true;
  for (const NodeId node : graph.nodes()) {
    if (graph.node(node).kind != NodeKind::kCall) continue;
    const std::string_view module = ModuleOf(graph, node);
    const bool is_loss = module == "loss" || module == "lm_head";
    if (!IsBackward(graph, node)) {
      if (is_loss) regions.assign(1, {});
      in_loss |= is_loss;
      if (!regions.back().empty()) regions.emplace_back();
      continue;
    }
    in_loss &= is_loss;
    if (!in_loss) regions.back().push_back(node);
  }
  return regions;
}

/// The region that reads recomputable results; empty when none does.
Result<Region> RegionToFeed(const Graph& graph, const IdVector<NodeId, bool>& recomputable) {
  std::vector<Region> regions = BackwardRegions(graph);
  std::erase_if(regions, [&](const Region& region) {
    return std::ranges::none_of(region, [&](NodeId node) {
      bool reads = false;
      graph.ForEachOperand(
          node, [&](ValueId operand) { reads |= recomputable[graph.value(operand).def]; });
      return reads;
    });
  });
  if (regions.empty()) return Region();
  if (regions.size() > 1) {
    return Error(
        "{} disjoint backward regions require recomputation: graph {}: forward nodes before {} "
        "separate them, move these or tag less",
        regions.size(), graph.name_text(), graph.name(regions[1].front()));
  }
  return std::move(regions.front());
}

/// Before which backward node each copy goes.
class CopyTargets {
 public:
  CopyTargets(const Graph& graph, const Replay& replay, const Region& region)
      : graph_(graph), replay_(replay) {
    Collect(region);
    // Copies of a write must follow copies of what reads the memory before it, if there are any.
    needed_.swap(target_);
    Collect(region);
    needed_.clear();
  }

  /// By copied node; in order of ids.
  const std::map<NodeId, NodeId>& targets() const { return target_; }

 private:
  void Collect(const Region& region) {
    for (const NodeId reader : region)
      AddSources(reader, reader);
  }

  void AddSources(NodeId reader, NodeId target) {
    std::vector<NodeId> open;
    const auto add = [&](NodeId source) {
      if (target_.try_emplace(source, target).second) open.push_back(source);
    };
    replay_.ForEachSource(reader, add);
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      replay_.ForEachSource(node, add);
      if (needed_.empty() || !Mutates(graph_, node)) continue;
      for (const NodeId earlier : replay_.ReadersBefore(node))
        if (needed_.contains(earlier)) add(earlier);
    }
  }

  const Graph& graph_;
  const Replay& replay_;
  std::map<NodeId, NodeId> target_;
  std::map<NodeId, NodeId> needed_;  // targets without regard to writes
};

class Recomputer {
 public:
  Recomputer(Graph& graph, const Replay& replay, const Region& region)
      : graph_(graph), replay_(replay), region_(region), rewriter_(graph), views_(graph) {}

  bool Run() {
    const CopyTargets copies(graph_, replay_, region_);
    if (copies.targets().empty()) return false;
    LearnNames();
    std::vector<NodeId> originals;
    for (const auto& [node, target] : copies.targets())
      originals.push_back(node);
    std::ranges::sort(originals, {}, [&](NodeId node) { return replay_.position(node); });
    FindReloads();
    for (const NodeId node : originals)
      CopyBefore(node, copies.targets().at(node));
    for (const NodeId node : originals)
      Redirect(node, replay_.position(copies.targets().at(node)));
    views_.Update(rewriter_);
    for (auto node = originals.rbegin(); node != originals.rend(); ++node)
      if (!IsNeeded(*node)) rewriter_.Erase(*node);
    return true;
  }

 private:
  void LearnNames() {
    for (const NodeId node : graph_.nodes()) {
      names_.emplace(graph_.name(node));
      for (size_t i = 0; i < graph_.node(node).num_results; ++i)
        names_.emplace(graph_.value_name(graph_.result(node, i)));
    }
  }

  /// `base`, or the first of `base_1`, `base_2`, … that nothing has.
  std::string FreeName(std::string base) {
    std::string name = base;
    for (int number = 1; !names_.insert(name).second; ++number)
      name = fmt::format("{}_{}", base, number);
    return name;
  }

  /// Follows `offload(f) → wait → reload → wait`: copies read what the last of them gives.
  void FindReloads() {
    for (const NodeId node : graph_.nodes()) {
      if (graph_.op(node) != kOffloadOp || !graph_.args(node)[0].is_value()) continue;
      ValueId back = graph_.result(node);
      for (const std::string_view op : {kTransferWaitOp, kReloadOp, kTransferWaitOp})
        back = ResultOfReader(back, op);
      if (back.valid()) reloaded_[graph_.args(node)[0].value()] = back;
    }
  }

  /// The result of the node of operator `op` whose first operand is `value`; none: there is none.
  ValueId ResultOfReader(ValueId value, std::string_view op) const {
    if (!value.valid()) return {};
    for (const Use use : graph_.uses(value)) {
      const bool is_first =
          graph_.args(use.user)[0].is_value() && graph_.args(use.user)[0].value() == value;
      if (graph_.op(use.user) == op && is_first) return graph_.result(use.user);
    }
    return {};
  }

  /// Moves what gives a reloaded value, and is not there yet, before `target`.
  void BringBefore(ValueId back, NodeId target) {
    std::vector<NodeId> chain, open = {graph_.value(back).def};
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      const bool is_old = node.index < static_cast<int32_t>(num_old_nodes_);
      if (!is_old || !IsBackward(graph_, node) || graph_.node(node).kind != NodeKind::kCall)
        continue;
      const auto moved = moved_before_.find(node);
      const int32_t at = moved == moved_before_.end() ? replay_.position(node) : moved->second;
      if (at <= replay_.position(target) || std::ranges::find(chain, node) != chain.end()) continue;
      chain.push_back(node);
      graph_.ForEachOperand(node,
                            [&](ValueId operand) { open.push_back(graph_.value(operand).def); });
    }
    std::ranges::sort(chain, {}, [&](NodeId node) { return replay_.position(node); });
    for (const NodeId node : chain) {
      rewriter_.MoveBefore(node, target);
      moved_before_[node] = replay_.position(target);
    }
  }

  void CopyBefore(NodeId node, NodeId target) {
    graph_.ForEachOperand(node, [&](ValueId operand) {
      if (const auto found = reloaded_.find(operand); found != reloaded_.end())
        BringBefore(found->second, target);
    });
    rewriter_.SetCursorBefore(target);
    const NodeId copy = rewriter_.Clone(node);
    rewriter_.SetName(copy, FreeName(fmt::format("{}_recomputed", graph_.name(node))));
    rewriter_.SetPhase(copy, Phase::kBackward);
    rewriter_.SetAttribute(copy, kRecomputedFromAttribute, graph_.name(node));
    for (size_t i = 0; i < graph_.node(node).num_results; ++i) {
      const ValueId from = graph_.result(node, i), to = graph_.result(copy, i);
      if (graph_.value(from).name.valid()) {
        rewriter_.SetElementName(to,
                                 FreeName(fmt::format("{}_recomputed", graph_.value_name(from))));
      }
      views_.Copy(from, to);
      copy_of_[from] = to;
    }
    OwnSubgraphs(copy, target);
    const std::vector<ValueId> operands = graph_.operands(copy);
    for (const ValueId operand : std::set<ValueId>(operands.begin(), operands.end())) {
      if (const auto found = copy_of_.find(operand); found != copy_of_.end()) {
        RedirectUses(operand, found->second, [&](NodeId user) { return user == copy; });
      } else if (const auto back = reloaded_.find(operand); back != reloaded_.end()) {
        RedirectUses(operand, back->second, [&](NodeId user) { return user == copy; });
      } else {
        kept_.insert(OwnerOf(graph_, operand));
      }
    }
  }

  /// A copied call of a body has the body's attribute for itself: what compiles it may differ.
  void OwnSubgraphs(NodeId copy, NodeId target) {
    for (const ValueId operand : graph_.operands(copy)) {
      const NodeId def = graph_.value(operand).def;
      const bool is_body = graph_.node(def).kind == NodeKind::kGetAttr &&
                           !graph_.args(def).empty() &&
                           graph_.args(def)[0].kind() == ArgKind::kGraph;
      if (!is_body || copy_of_.contains(operand)) continue;
      rewriter_.SetCursorBefore(copy);
      const NodeId own = rewriter_.Clone(def);
      rewriter_.SetPhase(own, Phase::kBackward);
      RedirectUses(operand, graph_.result(own), [&](NodeId user) { return user == copy; });
      rewriter_.SetCursorBefore(target);
    }
  }

  template <class Predicate>
  void RedirectUses(ValueId from, ValueId to, Predicate is_redirected) {
    std::vector<Use> uses;
    for (const Use use : graph_.uses(from))
      if (is_redirected(use.user)) uses.push_back(use);
    for (const Use use : uses)
      rewriter_.ReplaceUse(use, to);
  }

  /// Backward nodes from the copy on read it; backward of the loss comes before.
  void Redirect(NodeId original, int32_t from_position) {
    for (size_t i = 0; i < graph_.node(original).num_results; ++i) {
      const ValueId value = graph_.result(original, i);
      RedirectUses(value, copy_of_.at(value), [&](NodeId user) {
        const bool is_old = user.index < static_cast<int32_t>(num_old_nodes_);
        return is_old && IsBackward(graph_, user) && replay_.position(user) >= from_position;
      });
    }
  }

  /// A write is needed as long as something reads the memory after it.
  bool IsNeeded(NodeId node) const {
    if (graph_.HasUses(node)) return true;
    for (const ValueId owner : replay_.WrittenBy(node)) {
      if (kept_.contains(owner)) return true;
      for (const NodeId reader : replay_.ReadersOf(owner)) {
        const bool reads_later = graph_.node(reader).kind != NodeKind::kErased &&
                                 replay_.position(reader) > replay_.position(node);
        if (!reads_later) continue;
        for (const ValueId operand : graph_.operands(reader))
          if (OwnerOf(graph_, operand) == owner) return true;
      }
    }
    return false;
  }

  Graph& graph_;
  const Replay& replay_;
  const Region& region_;
  Rewriter rewriter_;
  ViewedOperands views_;
  const size_t num_old_nodes_ = static_cast<size_t>(graph_.node_bound());
  std::unordered_set<std::string> names_;
  std::map<ValueId, ValueId> copy_of_;
  std::map<ValueId, ValueId> reloaded_;     // by offloaded value: the wait for what came back
  std::map<NodeId, int32_t> moved_before_;  // by moved node: the position of the node before which
  std::set<ValueId> kept_;                  // owners of original memory that copies read
};

Result<bool> RecomputeIn(Graph& graph) {
  const IdVector<NodeId, bool> recomputable = RecomputableNodes(graph);
  if (std::ranges::find(recomputable, true) == recomputable.end()) return false;
  const Replay replay(graph, recomputable);
  STRATA_RETURN_IF_ERROR(CheckTags(graph, replay, recomputable));
  STRATA_TRY(const Region region, RegionToFeed(graph, recomputable));
  return Recomputer(graph, replay, region).Run();
}

}  // namespace

Result<Changed> Recompute::Run(Module& module) {
  bool changed = false;
  for (const GraphId id : module.programs()) {
    STRATA_TRY(const bool recomputed, RecomputeIn(module.graph(id)));
    changed |= recomputed;
  }
  return Changed(changed);
}

}  // namespace strata
