#include "passes/comm/overlap.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "ir/rewriter.h"
#include "passes/comm/bucketing.h"
#include "passes/comm/fsdp_collectives.h"
#include "passes/comm/moves.h"
#include "passes/core/collectives.h"
#include "passes/simulate/node_cost.h"

namespace strata {
namespace {

/// Program order, and when computation reaches each node if it never waits.
class ComputeClock {
 public:
  ComputeClock(const Graph& graph, const NodeCost& cost) : order_(graph.nodes().Snapshot()) {
    double now = 0;
    for (const NodeId node : order_) {
      at_.push_back(now);
      now += cost.ComputeUs(graph, node);
    }
  }

  double At(int32_t position) const { return at_[static_cast<size_t>(position)]; }
  NodeId node(int32_t position) const { return order_[static_cast<size_t>(position)]; }
  /// The last node that computation reaches at `us` or before.
  int32_t LastBy(double us) const {
    const auto after = std::ranges::upper_bound(at_, us);
    return std::max<int32_t>(0, static_cast<int32_t>(after - at_.begin()) - 1);
  }
  /// The first node that computation reaches at `us` or later; the last node if there is none.
  int32_t FirstFrom(double us) const {
    const auto found = std::ranges::lower_bound(at_, us);
    return static_cast<int32_t>(std::min<std::ptrdiff_t>(found - at_.begin(), std::ssize(at_) - 1));
  }

 private:
  std::vector<NodeId> order_;
  std::vector<double> at_;
};

class Overlapper {
 public:
  Overlapper(Graph& graph, const NodeCost& cost, double max_ahead_bytes)
      : graph_(graph),
        cost_(cost),
        max_ahead_bytes_(max_ahead_bytes),
        fsdp_(graph),
        rewriter_(graph) {}

  Result<bool> Run() {
    AwaitLate();
    STRATA_RETURN_IF_ERROR(DelayReductions());
    STRATA_RETURN_IF_ERROR(LaunchGathers());
    return moved_;
  }

 private:
  bool IsOfParameters(NodeId launch, CollectiveKind kind) const {
    const bool is_bucket = !graph_.attribute(launch, kBucketAttribute).empty();
    return IsCollective(graph_, launch, kind) && (is_bucket || fsdp_.Contains(launch)) &&
           OnlyWaitOf(graph_, launch).valid();
  }
  bool IsReduction(NodeId launch) const {
    return IsOfParameters(launch, CollectiveKind::kReduceScatter) ||
           IsOfParameters(launch, CollectiveKind::kAllReduce);
  }

  /// Waits stand before their first readers.
  void AwaitLate() {
    const Positions positions(graph_);
    for (const NodeId wait : graph_.nodes().Snapshot()) {
      if (!IsWait(graph_, wait)) continue;
      const std::vector<NodeId> users = UsersOf(graph_, wait);
      if (users.empty()) continue;
      const NodeId first =
          *std::ranges::min_element(users, {}, [&](NodeId user) { return positions[user]; });
      if (graph_.node(wait).next == first) continue;
      rewriter_.MoveBefore(wait, first);
      moved_ = true;
    }
  }

  Status DelayReductions() {
    const ComputeClock clock(graph_, cost_);
    Positions positions(graph_);
    std::map<std::string, double, std::less<>> free_at;  // by group
    for (const NodeId launch : graph_.nodes().Snapshot()) {
      if (!IsReduction(launch)) continue;
      STRATA_TRY(const double us, cost_.CollectiveUs(graph_, launch));
      double& free = free_at[std::string(GroupOf(graph_, launch))];
      free = std::max(free, clock.At(positions[launch])) + us;
      Delay(OnlyWaitOf(graph_, launch), clock.node(clock.FirstFrom(free)), positions);
    }
    return Ok();
  }

  /// Moves `wait` and what reads it before `target`, if these read nothing else.
  void Delay(NodeId wait, NodeId target, Positions& positions) {
    if (positions[target] <= positions[wait]) return;
    std::vector<NodeId> moved = ReadersBefore(graph_, positions, wait, target);
    const std::set<NodeId> readers(moved.begin(), moved.end());
    const bool is_closed = std::ranges::all_of(moved, [&](NodeId reader) {
      const std::vector<NodeId> inputs = InputsOf(graph_, reader);
      return std::ranges::all_of(
          inputs, [&](NodeId input) { return input == wait || readers.contains(input); });
    });
    if (!is_closed || readers.contains(target)) return;
    moved.insert(moved.begin(), wait);
    for (const NodeId node : moved) {
      rewriter_.MoveBefore(node, target);
      positions.PlaceBeside(node, target);
    }
    moved_ = true;
  }

  /// From the last wait to the first: each gather ends when its wait is reached, or when the next
  /// one on its stream begins.
  Status LaunchGathers() {
    const ComputeClock clock(graph_, cost_);
    Positions positions(graph_);
    struct Gather {
      NodeId launch, wait;
      double bytes;
      int32_t target;  ///< position to launch at
    };
    std::vector<Gather> gathers;
    for (const NodeId node : graph_.nodes()) {
      if (!IsOfParameters(node, CollectiveKind::kAllGather)) continue;
      gathers.push_back({.launch = node,
                         .wait = OnlyWaitOf(graph_, node),
                         .bytes = cost_.expected().CollectiveBytes(node),
                         .target = 0});
    }
    std::ranges::sort(gathers, {}, [&](const Gather& gather) { return positions[gather.wait]; });
    std::map<std::string, double, std::less<>> begin;  // of the next gather of the group
    for (auto gather = gathers.rbegin(); gather != gathers.rend(); ++gather) {
      STRATA_TRY(const double us, cost_.CollectiveUs(graph_, gather->launch));
      const double deadline = clock.At(positions[gather->wait]);
      const auto [next, is_last] =
          begin.try_emplace(std::string(GroupOf(graph_, gather->launch)), deadline);
      next->second = std::min(next->second, deadline) - us;
      gather->target = std::min(positions[gather->wait], clock.LastBy(next->second));
    }
    // In order of the waits: a gather is launched after the wait that frees enough memory.
    size_t oldest = 0;
    double ahead = 0;
    int32_t earliest = 0;
    for (Gather& gather : gathers) {
      ahead += gather.bytes;
      for (; ahead > max_ahead_bytes_ && gathers[oldest].launch != gather.launch; ++oldest) {
        ahead -= gathers[oldest].bytes;
        earliest = std::max(earliest, positions[gathers[oldest].wait] + 1);
      }
      earliest = std::max(earliest, std::max(gather.target, FirstCall()));
      const int32_t target = std::min(earliest, positions[gather.wait]);
      Launch(gather.launch, clock.node(target), positions);
      earliest = target;
    }
    return Ok();
  }

  /// The position of the first node that is not an input.
  int32_t FirstCall() const { return static_cast<int32_t>(graph_.placeholders().size()); }

  void Launch(NodeId launch, NodeId before, Positions& positions) {
    if (positions[launch] <= positions[before]) {
      Lower(launch, before, positions);
      return;
    }
    while (NeedsFrom(launch, before, positions))  // the launch packs its operands after `before`
      before = graph_.node(before).next;
    if (before == launch) return;
    HoistBefore(rewriter_, positions, launch, before);
    moved_ = true;
  }

  /// Whether `node` reads `from`, perhaps through nodes after it.
  bool NeedsFrom(NodeId node, NodeId from, const Positions& positions) const {
    std::set<NodeId> seen = {node};
    std::vector<NodeId> open = {node};
    while (!open.empty()) {
      const NodeId reader = open.back();
      open.pop_back();
      if (reader == from) return true;
      for (const NodeId input : InputsOf(graph_, reader))
        if (positions[input] >= positions[from] && seen.insert(input).second) open.push_back(input);
    }
    return false;
  }

  /// A launch that stands too early moves down.
  void Lower(NodeId launch, NodeId before, Positions& positions) {
    if (positions[launch] >= positions[before] || graph_.node(launch).next == before) return;
    rewriter_.MoveBefore(launch, before);
    positions.PlaceBeside(launch, before);
    moved_ = true;
  }

  Graph& graph_;
  const NodeCost& cost_;
  const double max_ahead_bytes_;
  const FsdpCollectives fsdp_;
  Rewriter rewriter_;
  bool moved_ = false;
};

}  // namespace

void OverlapCollectives::Options::Bind(OptionList& list) {
  list.Add("topology", topology, "what the estimates are for: a name or a TOML file");
  list.Add("max_ahead_mb", max_ahead_mb,
           "of gathered parameters that wait to be read, in 1e6 bytes");
}

Result<Changed> OverlapCollectives::Run(Module& module) {
  STRATA_TRY(const Topology topology, Topology::Load(options_.topology));
  bool changed = false;
  for (const GraphId id : module.programs()) {
    Graph& graph = module.graph(id);
    if (!graph.output().valid()) continue;
    STRATA_TRY(const NodeCost cost, NodeCost::Make(topology, graph));
    STRATA_TRY(const bool moved, Overlapper(graph, cost, options_.max_ahead_mb * 1e6).Run());
    changed |= moved;
  }
  return Changed(changed);
}

}  // namespace strata
