#include "passes/simulate/timeline.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "passes/core/collectives.h"

namespace strata {
namespace {

class Simulator {
 public:
  Simulator(const Graph& graph, const NodeCost& cost) : graph_(graph), cost_(cost) {
    timeline_.streams.emplace_back("compute");
  }

  Result<Timeline> Run() {
    for (const NodeId node : graph_.nodes()) {
      if (CollectiveOf(graph_, node)) {
        STRATA_RETURN_IF_ERROR(Launch(node));
      } else if (IsWait(graph_, node)) {
        Wait(node);
      } else {
        Compute(node);
      }
    }
    const double end_of_compute = now_;
    while (NextEnd().has_value())
      Advance(*NextEnd());
    timeline_.step_us = std::max(end_of_compute, now_);
    std::ranges::stable_sort(timeline_.events, {}, [](const TimelineEvent& event) {
      return std::pair(event.stream, event.start_us);
    });
    return std::move(timeline_);
  }

 private:
  struct Transfer {
    NodeId launch;
    double left_us;  ///< alone on its links
    double start_us = 0;
    bool is_inside;  ///< within nodes
  };
  struct Stream {
    std::deque<Transfer> queue;  ///< the first one runs
  };

  Status Launch(NodeId node) {
    STRATA_TRY(const double us, cost_.CollectiveUs(graph_, node));
    STRATA_TRY(const bool is_inside, cost_.IsInsideNodes(graph_, node));
    const std::string group(GroupOf(graph_, node));
    const auto [found, is_new] = stream_of_.try_emplace(group, streams_.size());
    if (is_new) {
      streams_.emplace_back();
      timeline_.streams.push_back(group);
      timeline_.groups.push_back({.group = group});
    }
    const size_t stream = found->second;
    GroupUse& use = timeline_.groups[stream];
    ++use.count;
    use.bytes += cost_.expected().CollectiveBytes(node);
    streams_[stream].queue.push_back(
        {.launch = node, .left_us = us, .start_us = now_, .is_inside = is_inside});
    pending_[node] = stream;
    return Ok();
  }

  void Wait(NodeId wait) {
    const std::vector<ValueId> operands = graph_.operands(wait);
    if (operands.empty()) return;
    const NodeId launch = graph_.value(operands[0]).def;
    const auto found = pending_.find(launch);
    if (found == pending_.end()) return;
    const size_t stream = found->second;
    const double start = now_;
    while (pending_.contains(launch))
      Advance(*NextEnd());
    if (now_ <= start) return;
    timeline_.groups[stream].exposed_us += now_ - start;
    timeline_.events.push_back(
        {.node = wait, .stream = 0, .start_us = start, .end_us = now_, .is_idle = true});
  }

  void Compute(NodeId node) {
    double left = cost_.ComputeUs(graph_, node);
    if (left <= 0) return;
    const double end = now_ + left;
    timeline_.events.push_back({.node = node, .stream = 0, .start_us = now_, .end_us = end});
    timeline_.compute_us += left;
    while (true) {
      const std::optional<double> next = NextEnd();
      if (!next || *next >= end) break;
      Advance(*next);
    }
    Advance(end);
  }

  /// How many transfers that run share each kind of link.
  std::pair<int, int> Sharing() const {
    int inside = 0, between = 0;
    for (const Stream& stream : streams_) {
      if (stream.queue.empty()) continue;
      ++(stream.queue.front().is_inside ? inside : between);
    }
    return {inside, between};
  }

  /// When the next transfer ends, if none is launched before.
  std::optional<double> NextEnd() const {
    const auto [inside, between] = Sharing();
    std::optional<double> next;
    for (const Stream& stream : streams_) {
      if (stream.queue.empty()) continue;
      const Transfer& transfer = stream.queue.front();
      const double end = now_ + transfer.left_us * (transfer.is_inside ? inside : between);
      next = next ? std::min(*next, end) : end;
    }
    return next;
  }

  /// REQUIRES: no transfer ends before `until`.
  void Advance(double until) {
    const auto [inside, between] = Sharing();
    const double elapsed = until - now_;
    now_ = until;
    for (size_t i = 0; i < streams_.size(); ++i) {
      std::deque<Transfer>& queue = streams_[i].queue;
      if (queue.empty()) continue;
      Transfer& transfer = queue.front();
      transfer.left_us -= elapsed / (transfer.is_inside ? inside : between);
      constexpr double kRounding = 1e-9;  // of sums of thousands of µs
      if (transfer.left_us > kRounding * (1 + until)) continue;
      timeline_.groups[i].busy_us += now_ - transfer.start_us;
      timeline_.events.push_back({.node = transfer.launch,
                                  .stream = static_cast<int32_t>(i) + 1,
                                  .start_us = transfer.start_us,
                                  .end_us = now_});
      pending_.erase(transfer.launch);
      queue.pop_front();
      if (!queue.empty()) queue.front().start_us = now_;
    }
  }

  const Graph& graph_;
  const NodeCost& cost_;
  Timeline timeline_;
  std::map<std::string, size_t> stream_of_;
  std::vector<Stream> streams_;
  std::map<NodeId, size_t> pending_;  // launched and not ended: the stream
  double now_ = 0;
};

}  // namespace

double Timeline::busy_us() const {
  double sum = 0;
  for (const GroupUse& use : groups)
    sum += use.busy_us;
  return sum;
}

double Timeline::exposed_us() const {
  double sum = 0;
  for (const GroupUse& use : groups)
    sum += use.exposed_us;
  return sum;
}

Result<Timeline> Simulate(const Graph& graph, const NodeCost& cost) {
  return Simulator(graph, cost).Run();
}

}  // namespace strata
