#include "passes/comm/prefetch.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "ir/ops.h"
#include "passes/comm/bucketing.h"
#include "passes/comm/moves.h"
#include "passes/core/collectives.h"
#include "passes/memory/tags.h"
#include "passes/simulate/compute.h"

namespace strata {
namespace {

class Prefetcher {
 public:
  Prefetcher(Rewriter& rewriter, const BucketPlan& plan)
      : rewriter_(rewriter), graph_(rewriter.graph()), entries_(plan) {}

  bool Run() {
    DelayWaits(CollectiveKind::kAllReduce);
    DelayWaits(CollectiveKind::kReduceScatter);
    LaunchAhead();
    return moved_;
  }

 private:
  bool IsBucket(NodeId node) const { return !graph_.attribute(node, kBucketAttribute).empty(); }
  /// The launch that a wait of a bucket waits for; none: it is not one.
  NodeId LaunchOf(NodeId wait) const {
    if (!IsWait(graph_, wait) || !IsBucket(wait)) return {};
    return graph_.value(graph_.args(wait)[0].value()).def;
  }

  void DelayWaits(CollectiveKind kind) {
    Positions positions(graph_);
    std::vector<NodeId> launches, waits;  // since the wait before
    for (const NodeId node : graph_.nodes().Snapshot()) {
      if (IsBucket(node) && IsCollective(graph_, node, kind)) launches.push_back(node);
      const NodeId launch = LaunchOf(node);
      if (!launch.valid() || !IsCollective(graph_, launch, kind)) continue;
      if (!launches.empty()) {
        for (const NodeId wait : waits)
          Delay(wait, launches.back(), positions);
        launches.clear();
        waits.clear();
      }
      waits.push_back(node);
    }
  }

  /// Moves `wait` and its readers behind `launch` and what was moved there before.
  void Delay(NodeId wait, NodeId launch, Positions& positions) {
    if (positions[wait] > positions[launch]) return;
    std::vector<NodeId> moved = ReadersBefore(graph_, positions, wait, launch);
    const std::set<NodeId> readers(moved.begin(), moved.end());
    const bool is_closed = std::ranges::all_of(moved, [&](NodeId reader) {
      bool is_inside = true;
      graph_.ForEachOperand(reader, [&](ValueId operand) {
        const NodeId def = graph_.value(operand).def;
        is_inside &= def == wait || readers.contains(def);
      });
      return is_inside;
    });
    if (!is_closed || ReadsFrom(launch, wait, readers)) return;
    moved.insert(moved.begin(), wait);
    NodeId& last = last_behind_.try_emplace(launch, launch).first->second;
    for (const NodeId node : moved) {
      rewriter_.MoveBefore(node, graph_.node(last).next);
      positions.PlaceBeside(node, launch);
      last = node;
    }
    moved_ = true;
  }

  bool ReadsFrom(NodeId launch, NodeId wait, const std::set<NodeId>& readers) const {
    const std::vector<NodeId> inputs = InputsOf(graph_, launch);
    return std::ranges::any_of(
        inputs, [&](NodeId input) { return input == wait || readers.contains(input); });
  }

  void LaunchAhead() {
    Positions positions(graph_);
    const std::vector<NodeId> nodes = graph_.nodes().Snapshot();
    std::array<std::vector<NodeId>, 2> launches;  // after the wait, in reverse order, by direction
    std::array<NodeId, 2> first_compute;
    std::vector<std::pair<NodeId, NodeId>> moves;  // what, and before what
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const size_t direction = IsBackward(graph_, *node) ? 1 : 0;
      std::vector<NodeId>& picked = launches[direction];
      if (IsBucket(*node) && IsCollective(graph_, *node, CollectiveKind::kAllGather)) {
        picked.push_back(*node);
      } else if (const NodeId launch = LaunchOf(*node);
                 launch.valid() && IsCollective(graph_, launch, CollectiveKind::kAllGather)) {
        for (const NodeId later : picked)
          if (!ReadsOneOf(later, {*node}, positions)) moves.emplace_back(later, *node);
        picked.clear();
      } else if (IsCompute(graph_, *node) && entries_.EntryOf(ModuleOf(graph_, *node)) >= 0) {
        first_compute[direction] = *node;
      }
    }
    for (size_t direction = 0; direction < 2; ++direction) {
      const NodeId compute = first_compute[direction];
      if (!compute.valid() || ReadsOneOf(compute, launches[direction], positions)) continue;
      for (const NodeId launch : launches[direction])
        moves.emplace_back(launch, compute);
    }
    // The first launch first: it must stay before the others.
    std::ranges::sort(moves, {}, [&](const auto& move) { return positions[move.first]; });
    for (const auto& [launch, before] : moves) {
      moved_ |= positions[launch] > positions[before];
      HoistBefore(rewriter_, positions, launch, before);
    }
  }

  /// Whether `reader` reads a result of one of `sources`, directly or not.
  bool ReadsOneOf(NodeId reader, const std::vector<NodeId>& sources,
                  const Positions& positions) const {
    if (sources.empty()) return false;
    const std::set<NodeId> wanted(sources.begin(), sources.end());
    const auto at = [&](NodeId node) { return positions[node]; };
    const int32_t from = at(*std::ranges::min_element(sources, {}, at));
    std::set<NodeId> seen = {reader};
    std::vector<NodeId> open = {reader};
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      if (wanted.contains(node)) return true;
      graph_.ForEachOperand(node, [&](ValueId operand) {
        const NodeId def = graph_.value(operand).def;
        if (positions[def] >= from && seen.insert(def).second) open.push_back(def);
      });
    }
    return false;
  }

  Rewriter& rewriter_;
  Graph& graph_;
  const BucketIndex entries_;
  std::map<NodeId, NodeId> last_behind_;
  bool moved_ = false;
};

}  // namespace

bool PrefetchBuckets(Rewriter& rewriter, const BucketPlan& plan) {
  return Prefetcher(rewriter, plan).Run();
}

}  // namespace strata
