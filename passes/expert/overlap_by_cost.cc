#include "passes/expert/overlap_by_cost.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "ir/by_node.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/chunk_attributes.h"
#include "passes/core/collectives.h"
#include "passes/core/viewed_operands.h"
#include "passes/core/written_memory.h"
#include "passes/expert/exchange_labels.h"

namespace strata {
namespace {

/// Estimates err, and ranks do not run in step: a wait is put off by up to this many times what its
/// exchange takes, where there is work enough for all exchanges.
constexpr double kMostMargin = 2;
/// Regions that are begun while an older one has work left.
constexpr int32_t kMostAhead = 2;

constexpr int32_t kNowhere = std::numeric_limits<int32_t>::max();

/// What of the graph a node is.
struct Lane {
  int32_t lane = -1;    ///< the turn of its chunk in its direction; -1: of no chunk
  int32_t region = -1;  ///< in order of the first nodes
  /// How many exchanges of its lane come before the first one that needs it; kNowhere: none does.
  int32_t exchange = kNowhere;
};

/// A collective that was launched.
struct Flight {
  double end_us = 0;  ///< by its estimate
  double due_us = 0;  ///< until then other work comes before its wait
};

class CostScheduler {
 public:
  CostScheduler(const Graph& graph, const ExecutionOrder& order, const NodeCost& cost)
      : graph_(graph),
        order_(order),
        cost_(cost),
        lanes_(ByNode<Lane>(graph)),
        missing_(ByNode<int32_t>(graph)),
        users_(ByNode<std::vector<NodeId>>(graph)) {}

  Result<std::vector<NodeId>> Run(const std::vector<ChunkBodies>& bodies) {
    AddLanes(bodies);
    FindExchanges();
    STRATA_RETURN_IF_ERROR(FindSlack());
    for (const NodeId node : graph_.nodes()) {
      if (node == graph_.output()) continue;
      missing_[node] = static_cast<int32_t>(order_.Before(node).size());
      for (const NodeId before : order_.Before(node))
        users_[before].push_back(node);
      num_left_ += 1;
      num_forward_left_ += IsForward(node) ? 1 : 0;
    }
    for (const NodeId node : graph_.nodes())
      if (node != graph_.output() && missing_[node] == 0 && !IsInput(node)) AddReady(node);
    for (const NodeId node : graph_.placeholders())
      STRATA_RETURN_IF_ERROR(Emit(node));
    while (num_left_ > 0) {
      const std::optional<NodeId> next = Next();
      if (!next)
        return Error(ErrorCode::kInternal, "an order of nodes has a cycle: graph {}",
                     graph_.name_text());
      STRATA_RETURN_IF_ERROR(Emit(*next));
    }
    if (graph_.output().valid()) sorted_.push_back(graph_.output());
    return std::move(sorted_);
  }

 private:
  using Ready = std::set<std::pair<int32_t, NodeId>>;  // by position

  void AddLanes(const std::vector<ChunkBodies>& bodies) {
    num_left_in_.assign(bodies.size(), 0);
    for (size_t region = 0; region < bodies.size(); ++region) {
      const size_t count = bodies[region].chunks.size();
      num_lanes_ = std::max(num_lanes_, count);
      for (size_t chunk = 0; chunk < count; ++chunk) {
        const size_t turn = bodies[region].is_backward ? count - 1 - chunk : chunk;
        for (const NodeId node : bodies[region].chunks[chunk]) {
          lanes_[node].lane = static_cast<int32_t>(turn);
          lanes_[node].region = static_cast<int32_t>(region);
          ++num_left_in_[region];
        }
      }
      is_backward_.push_back(bodies[region].is_backward);
    }
    launched_.assign(num_lanes_, 0);
    urgent_.resize(num_lanes_);
    later_.resize(num_lanes_);
  }

  bool IsForward(NodeId node) const { return graph_.node(node).phase == Phase::kForward; }
  bool IsInput(NodeId node) const { return graph_.node(node).kind == NodeKind::kPlaceholder; }

  bool IsExchange(NodeId node) const {
    return lanes_[node].lane >= 0 && CollectiveOf(graph_, node).has_value() &&
           !graph_.attribute(node, kExchangeAttribute).empty();
  }

  /// Numbers the exchanges of each lane, and finds for each node the first one that needs it.
  void FindExchanges() {
    std::vector<int32_t> count(num_lanes_, 0);
    const std::vector<NodeId> nodes = graph_.nodes().Snapshot();
    for (const NodeId node : nodes) {
      if (!IsExchange(node)) continue;
      lanes_[node].exchange = count[static_cast<size_t>(lanes_[node].lane)]++;
    }
    // What a node of no chunk needs is as urgent as that is for any of the lanes.
    for (const NodeId node : nodes | std::views::reverse) {
      for (const NodeId before : order_.Before(node)) {
        if (IsExchange(before)) continue;
        lanes_[before].exchange = std::min(lanes_[before].exchange, lanes_[node].exchange);
      }
    }
  }

  /// How long an exchange may take beyond its estimate, on average, before computation waits for
  /// it.
  Status FindSlack() {
    double left_us = 0;
    int64_t count = 0;
    for (const NodeId node : graph_.nodes()) {
      if (IsExchange(node)) {
        STRATA_TRY(const double us, cost_.CollectiveUs(graph_, node));
        left_us -= us;
        ++count;
      } else if (!CollectiveOf(graph_, node)) {
        left_us += cost_.ComputeUs(graph_, node);
      }
    }
    if (count > 0) slack_us_ = std::max(0.0, left_us / static_cast<double>(count));
    return Ok();
  }

  void AddReady(NodeId node) {
    const std::pair entry(order_.position(node), node);
    const Lane& lane = lanes_[node];
    if (lane.lane < 0) {
      outside_.insert(entry);
      needed_.emplace(lane.exchange, entry);
    } else if (IsWait(graph_, node) && flights_.contains(LaunchOf(node))) {
      waits_.insert(entry);
    } else if (CollectiveOf(graph_, node)) {
      launches_.insert(entry);
    } else {
      const auto at = static_cast<size_t>(lane.lane);
      (lane.exchange <= launched_[at] ? urgent_ : later_)[at].insert(entry);
    }
  }

  NodeId LaunchOf(NodeId wait) const {
    const std::vector<ValueId> operands = graph_.operands(wait);
    return operands.empty() ? NodeId{} : graph_.value(operands[0]).def;
  }

  std::optional<NodeId> Next() {
    if (!launches_.empty()) return launches_.begin()->second;
    for (const auto& [position, wait] : waits_)
      if (flights_.at(LaunchOf(wait)).due_us <= now_) return wait;
    if (!outside_.empty() && outside_.begin()->first <= reached_) return outside_.begin()->second;
    if (!needed_.empty() && needed_.begin()->first <= *std::ranges::max_element(launched_))
      return needed_.begin()->second.second;
    if (const std::optional<NodeId> urgent = MostUrgent()) return urgent;
    if (const std::optional<NodeId> later = OldestLater()) return later;
    if (const std::optional<NodeId> wait = NextWait()) return wait;
    if (!outside_.empty()) return outside_.begin()->second;
    return Oldest();
  }

  /// Work far ahead would keep memory, and what was recomputed in forward would be kept till
  /// backward.
  bool MayRun(int32_t region) const {
    if (is_backward_[static_cast<size_t>(region)] && num_forward_left_ > 0) return false;
    return region <= static_cast<int32_t>(front_) + kMostAhead;
  }

  /// The wait of the exchange that ends first.
  std::optional<NodeId> NextWait() const {
    std::optional<std::pair<double, NodeId>> next;
    for (const auto& [position, wait] : waits_) {
      const std::pair entry(flights_.at(LaunchOf(wait)).end_us, wait);
      if (!next || entry < *next) next = entry;
    }
    return next ? std::optional(next->second) : std::nullopt;
  }

  std::optional<NodeId> MostUrgent() const {
    std::optional<size_t> best;
    for (size_t lane = 0; lane < num_lanes_; ++lane) {
      if (!HasWork(urgent_[lane])) continue;
      if (!best || launched_[lane] < launched_[*best]) best = lane;
    }
    return best ? std::optional(urgent_[*best].begin()->second) : std::nullopt;
  }

  bool HasWork(const Ready& ready) const {
    return !ready.empty() && MayRun(lanes_[ready.begin()->second].region);
  }

  std::optional<NodeId> OldestLater() const {
    std::optional<std::pair<int32_t, NodeId>> oldest;
    for (const Ready& ready : later_)
      if (HasWork(ready) && (!oldest || *ready.begin() < *oldest)) oldest = *ready.begin();
    return oldest ? std::optional(oldest->second) : std::nullopt;
  }

  /// Of all work of chunks, however far ahead it is.
  std::optional<NodeId> Oldest() const {
    std::optional<std::pair<int32_t, NodeId>> oldest;
    for (const std::vector<Ready>* lanes : {&urgent_, &later_})
      for (const Ready& ready : *lanes)
        if (!ready.empty() && (!oldest || *ready.begin() < *oldest)) oldest = *ready.begin();
    return oldest ? std::optional(oldest->second) : std::nullopt;
  }

  Status Emit(NodeId node) {
    const std::pair entry(order_.position(node), node);
    const int32_t lane = lanes_[node].lane;
    for (Ready* ready : {&launches_, &waits_, &outside_})
      ready->erase(entry);
    if (lane < 0) {
      needed_.erase({lanes_[node].exchange, entry});
    } else {
      urgent_[static_cast<size_t>(lane)].erase(entry);
      later_[static_cast<size_t>(lane)].erase(entry);
      reached_ = std::max(reached_, entry.first);
      --num_left_in_[static_cast<size_t>(lanes_[node].region)];
      while (front_ + 1 < num_left_in_.size() && num_left_in_[front_] == 0)
        ++front_;
    }
    sorted_.push_back(node);
    num_left_ -= 1;
    num_forward_left_ -= IsForward(node) ? 1 : 0;
    if (CollectiveOf(graph_, node)) {
      STRATA_TRY(const double us, cost_.CollectiveUs(graph_, node));
      double& free = free_at_[std::string(GroupOf(graph_, node))];
      free = std::max(free, now_) + us;
      flights_[node] = {.end_us = free, .due_us = free + std::min(kMostMargin * us, slack_us_)};
      if (IsExchange(node)) Advance(static_cast<size_t>(lane));
    } else if (IsWait(graph_, node)) {
      const auto flight = flights_.find(LaunchOf(node));
      if (flight != flights_.end()) now_ = std::max(now_, flight->second.end_us);
    } else {
      now_ += cost_.ComputeUs(graph_, node);
    }
    for (const NodeId user : users_[node])
      if (--missing_[user] == 0) AddReady(user);
    return Ok();
  }

  /// The lane has launched one more exchange: what the next one needs is urgent now.
  void Advance(size_t lane) {
    ++launched_[lane];
    for (auto entry = later_[lane].begin(); entry != later_[lane].end();) {
      if (lanes_[entry->second].exchange <= launched_[lane]) {
        urgent_[lane].insert(*entry);
        entry = later_[lane].erase(entry);
      } else {
        ++entry;
      }
    }
  }

  const Graph& graph_;
  const ExecutionOrder& order_;
  const NodeCost& cost_;
  IdVector<NodeId, Lane> lanes_;
  IdVector<NodeId, int32_t> missing_;
  IdVector<NodeId, std::vector<NodeId>> users_;
  size_t num_lanes_ = 0, num_left_ = 0, num_forward_left_ = 0;
  std::vector<size_t> num_left_in_;    // nodes, by region
  std::vector<bool> is_backward_;      // by region
  size_t front_ = 0;                   // the oldest region with nodes left
  std::vector<int32_t> launched_;      // exchanges, by lane
  std::vector<Ready> urgent_, later_;  // work, by lane
  Ready launches_, waits_, outside_;
  std::set<std::pair<int32_t, std::pair<int32_t, NodeId>>> needed_;  // as outside_, by exchange
  std::map<std::string, double> free_at_;                            // by group
  std::map<NodeId, Flight> flights_;                                 // by launch
  double now_ = 0;
  double slack_us_ = 0;
  int32_t reached_ = -1;  // the last position in a chunk that runs
  std::vector<NodeId> sorted_;
};

/// The concatenation that `split` takes apart again in the same parts; none: another value.
NodeId JoinedBy(const Graph& graph, NodeId split) {
  if (graph.attribute(split, kChunkRoleAttribute) != kSplitRole) return {};
  if (BaseName(graph.op(split)) != "split_with_sizes") return {};
  const NodeId cat = graph.value(graph.args(split)[0].value()).def;
  if (BaseName(graph.op(cat)) != "cat") return {};
  if (graph.attribute(cat, kChunkRoleAttribute) != kMaterializationRole) return {};
  const auto parts = graph.elements(graph.args(cat)[0]);
  if (parts.size() != graph.node(split).num_results) return {};
  const TypeTable& types = graph.module().types();
  for (size_t i = 0; i < parts.size(); ++i) {
    Type part = types[graph.value(graph.result(split, i)).type];
    part.dim = {};  // where it lies in the whole
    Type chunk = types[graph.value(parts[i].value()).type];
    chunk.dim = {};
    if (!(part == chunk)) return {};
  }
  return cat;
}

}  // namespace

size_t JoinChunkLanes(Rewriter& rewriter) {
  const Graph& graph = rewriter.graph();
  const ViewedOperands views(graph);
  const std::set<ValueId> written = WrittenMemory(graph);
  size_t count = 0;
  for (const NodeId split : graph.nodes().Snapshot()) {
    if (graph.node(split).kind != NodeKind::kCall) continue;
    const NodeId cat = JoinedBy(graph, split);
    if (!cat.valid()) continue;
    const auto elements = graph.elements(graph.args(cat)[0]);
    const std::vector<Arg> parts(elements.begin(), elements.end());
    const bool is_written = std::ranges::any_of(
        parts, [&](const Arg& part) { return written.contains(OwnerOf(graph, part.value())); });
    if (is_written) continue;
    for (size_t i = 0; i < parts.size(); ++i)
      rewriter.ReplaceUses(graph.result(split, i), parts[i].value());
    rewriter.Erase(split);
    if (!graph.HasUses(cat)) rewriter.Erase(cat);
    ++count;
  }
  views.Update(rewriter);
  return count;
}

Result<std::vector<NodeId>> OrderByCost(const Graph& graph, const ExecutionOrder& order,
                                        const std::vector<ChunkBodies>& bodies,
                                        const NodeCost& cost) {
  return CostScheduler(graph, order, cost).Run(bodies);
}

}  // namespace strata
