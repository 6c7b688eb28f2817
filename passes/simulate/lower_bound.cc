#include "passes/simulate/lower_bound.h"

#include <algorithm>
#include <array>
#include <queue>
#include <ranges>
#include <vector>

#include "ir/by_node.h"
#include "passes/core/collectives.h"
#include "passes/memory/tags.h"

namespace strata {
namespace {

/// Work of one node on a machine.
struct Job {
  double release_us = 0, us = 0, tail_us = 0;
};

/// When the last job and what follows it have ended in Jackson's schedule: of the jobs that are
/// released, the one with the longest tail runs.
double JacksonEnd(std::vector<Job> jobs) {
  std::ranges::sort(jobs, {}, &Job::release_us);
  const auto is_less_urgent = [](const Job& a, const Job& b) { return a.tail_us < b.tail_us; };
  std::priority_queue<Job, std::vector<Job>, decltype(is_less_urgent)> open(is_less_urgent);
  double now = 0, end = 0;
  for (size_t next = 0; next < jobs.size() || !open.empty();) {
    if (open.empty()) now = std::max(now, jobs[next].release_us);
    while (next < jobs.size() && jobs[next].release_us <= now)
      open.push(jobs[next++]);
    Job job = open.top();
    open.pop();
    if (next < jobs.size() && jobs[next].release_us < now + job.us) {
      job.us -= jobs[next].release_us - now;
      now = jobs[next].release_us;
      open.push(job);
      continue;
    }
    now += job.us;
    end = std::max(end, now + job.tail_us);
  }
  return end;
}

enum Machine : size_t { kCompute, kInsideNodes, kBetweenNodes, kMachines };

struct NodeWork {
  Machine machine = kCompute;
  double us = 0;
};

/// The first and the last part of the step in which a node can run. Parts come one after the other.
struct PartSpan {
  int32_t first = 0, last = 0;

  bool is_one() const { return first == last; }
};
using Parts = IdVector<NodeId, PartSpan>;

class Bounds {
 public:
  explicit Bounds(const Graph& graph)
      : graph_(graph),
        order_(graph.nodes().Snapshot()),
        work_(ByNode<NodeWork>(graph)),
        before_(ByNode<std::vector<NodeId>>(graph)) {
    for (const NodeId node : order_)
      before_[node] = InputsOf(graph, node);
  }

  Result<StepBound> Run(const NodeCost& cost) {
    StepBound bound;
    for (const NodeId node : order_) {
      NodeWork& own = work_[node];
      if (CollectiveOf(graph_, node)) {
        STRATA_TRY(own.us, cost.CollectiveUs(graph_, node));
        STRATA_TRY(const bool is_inside, cost.IsInsideNodes(graph_, node));
        own.machine = is_inside ? kInsideNodes : kBetweenNodes;
      } else {
        own.us = cost.ComputeUs(graph_, node);
      }
      bound.serial_us += own.us;
    }
    RecomputeLate();
    bound.least_us = std::max({LeastUs(ByNode<PartSpan>(graph_)), LeastUs(Cut(/*late=*/false)),
                               LeastUs(Cut(/*late=*/true))});
    return bound;
  }

 private:
  bool IsRecomputed(NodeId node) const {
    return !graph_.attribute(node, kRecomputedFromAttribute).empty();
  }

  /// Adds what must run before recomputation. The first gradient is that of the loss: of the nodes
  /// of backward that need no other ones, it has the longest chain before it.
  void RecomputeLate() {
    auto ends = ByNode<double>(graph_);
    auto needs_backward = ByNode(graph_, false);
    NodeId loss_gradient;
    double latest = 0;
    for (const NodeId node : order_) {
      double begin = 0;
      for (const NodeId before : before_[node]) {
        begin = std::max(begin, ends[before]);
        needs_backward[node] = needs_backward[node] || needs_backward[before];
      }
      ends[node] = begin + work_[node].us;
      if (graph_.node(node).phase != Phase::kBackward) continue;
      if (!needs_backward[node] && !IsRecomputed(node) && begin > latest) {
        latest = begin;
        loss_gradient = node;
      }
      needs_backward[node] = true;
    }
    if (!loss_gradient.valid()) return;
    const std::vector<NodeId> inputs = before_[loss_gradient];
    for (const NodeId node : order_)
      if (IsRecomputed(node))
        before_[node].insert(before_[node].end(), inputs.begin(), inputs.end());
  }

  std::vector<NodeId> LongestChain() const {
    auto ends = ByNode<double>(graph_);
    auto latest = ByNode<NodeId>(graph_);
    NodeId last;
    for (const NodeId node : order_) {
      for (const NodeId before : before_[node]) {
        if (latest[node].valid() && ends[before] <= ends[latest[node]]) continue;
        latest[node] = before;
      }
      ends[node] = work_[node].us + (latest[node].valid() ? ends[latest[node]] : 0);
      if (!last.valid() || ends[node] > ends[last]) last = node;
    }
    std::vector<NodeId> chain;
    for (NodeId node = last; node.valid(); node = latest[node])
      chain.push_back(node);
    std::ranges::reverse(chain);
    return chain;
  }

  /// Each node of the longest chain that nothing can run beside is a part of its own, and so is
  /// what runs between two of them. Computation that needs nothing of the chain does not count,
  /// nor, with `late`, computation that the chain does not need.
  Parts Cut(bool late) const {
    const std::vector<NodeId> chain = LongestChain();
    const auto end = static_cast<int32_t>(chain.size());
    // The last node of the chain before each node, and the first one after it, itself included.
    auto last = ByNode<int32_t>(graph_, -1), first = ByNode<int32_t>(graph_, end);
    for (int32_t i = 0; i < end; ++i)
      last[chain[static_cast<size_t>(i)]] = first[chain[static_cast<size_t>(i)]] = i;
    for (const NodeId node : order_)
      for (const NodeId before : before_[node])
        last[node] = std::max(last[node], last[before]);
    for (const NodeId node : order_ | std::views::reverse)
      for (const NodeId before : before_[node])
        first[before] = std::min(first[before], first[node]);

    std::vector<int32_t> beside(chain.size() + 1, 0);  // how many run beside: differences
    for (const NodeId node : order_) {
      const bool counts =
          work_[node].machine != kCompute || (last[node] >= 0 && (first[node] < end || !late));
      if (work_[node].us <= 0 || !counts || last[node] + 1 >= first[node]) continue;
      ++beside[static_cast<size_t>(last[node] + 1)];
      --beside[static_cast<size_t>(first[node])];
    }
    std::vector<int32_t> part_of(chain.size() + 1, 0);  // of what lies before a node of the chain
    std::vector<bool> is_cut(chain.size(), false);
    int32_t open = 0;
    for (size_t i = 0; i < chain.size(); ++i) {
      open += beside[i];
      is_cut[i] = open == 0;
      part_of[i + 1] = part_of[i] + (is_cut[i] ? 2 : 0);
    }
    Parts parts = ByNode<PartSpan>(graph_);
    for (const NodeId node : order_) {
      const auto from = static_cast<size_t>(last[node] + 1), to = static_cast<size_t>(first[node]);
      if (last[node] == first[node]) {
        const int32_t part = part_of[to] + (is_cut[to] ? 1 : 0);
        parts[node] = {part, part};
      } else {
        parts[node] = {part_of[from], part_of[to]};
      }
    }
    return parts;
  }

  /// The work of a part on each machine: `jobs` run in it, `released_us` is that of the nodes that
  /// run in it or later.
  struct Part {
    std::array<std::vector<Job>, kMachines> jobs;
    std::array<double, kMachines> released_us{};

    /// Releases and tails count within the part.
    double LeastUs() {
      double least = 0;
      for (std::vector<Job>& on_machine : jobs) {
        for (const Job& job : on_machine)
          least = std::max(least, job.release_us + job.us + job.tail_us);
        least = std::max(least, JacksonEnd(std::move(on_machine)));
      }
      return least;
    }
  };

  std::vector<Part> WorkOf(const Parts& parts) const {
    auto jobs = ByNode<Job>(graph_);
    int32_t count = 0;
    for (const NodeId node : order_) {
      count = std::max(count, parts[node].last + 1);
      if (!parts[node].is_one()) continue;
      Job& own = jobs[node];
      own.us = work_[node].us;
      for (const NodeId before : before_[node]) {
        if (!AreInOne(parts, before, node)) continue;
        own.release_us = std::max(own.release_us, jobs[before].release_us + jobs[before].us);
      }
    }
    for (const NodeId node : order_ | std::views::reverse) {
      for (const NodeId before : before_[node]) {
        if (!AreInOne(parts, before, node)) continue;
        jobs[before].tail_us = std::max(jobs[before].tail_us, jobs[node].tail_us + jobs[node].us);
      }
    }
    std::vector<Part> work(static_cast<size_t>(count));
    for (const NodeId node : order_) {
      if (work_[node].us <= 0) continue;
      Part& part = work[static_cast<size_t>(parts[node].first)];
      part.released_us[work_[node].machine] += work_[node].us;
      if (parts[node].is_one()) part.jobs[work_[node].machine].push_back(jobs[node]);
    }
    return work;
  }

  static bool AreInOne(const Parts& parts, NodeId before, NodeId node) {
    return parts[before].is_one() && parts[node].is_one() &&
           parts[before].first == parts[node].first;
  }

  /// The sum over parts, of which the last ones take at least as long as a machine works on what is
  /// released in them.
  double LeastUs(const Parts& parts) const {
    std::vector<Part> work = WorkOf(parts);
    double before = 0;
    std::vector<double> sums;  // of the parts before each
    for (Part& part : work) {
      sums.push_back(before);
      before += part.LeastUs();
    }
    double least = before;
    std::array<double, kMachines> released_us{};
    for (size_t i = work.size(); i-- > 0;) {
      for (size_t machine = 0; machine < kMachines; ++machine)
        released_us[machine] += work[i].released_us[machine];
      least = std::max(least, sums[i] + std::ranges::max(released_us));
    }
    return least;
  }

  const Graph& graph_;
  const std::vector<NodeId> order_;
  IdVector<NodeId, NodeWork> work_;
  IdVector<NodeId, std::vector<NodeId>> before_;  // what must run before
};

}  // namespace

double StepBound::Overlapped(double step_us) const {
  const double most = serial_us - least_us;
  return most <= 0 ? 1 : std::clamp((serial_us - step_us) / most, 0.0, 1.0);
}

Result<StepBound> StepBoundOf(const Graph& graph, const NodeCost& cost) {
  return Bounds(graph).Run(cost);
}

}  // namespace strata
