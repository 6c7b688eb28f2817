#include "passes/simulate/lower_bound.h"

#include <algorithm>
#include <array>
#include <queue>
#include <ranges>
#include <vector>

#include "ir/by_node.h"
#include "passes/core/collectives.h"

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
  Job job;
};

}  // namespace

double StepBound::Overlapped(double step_us) const {
  const double most = serial_us - least_us;
  return most <= 0 ? 1 : std::clamp((serial_us - step_us) / most, 0.0, 1.0);
}

Result<StepBound> StepBoundOf(const Graph& graph, const NodeCost& cost) {
  StepBound bound;
  auto work = ByNode<NodeWork>(graph);
  for (const NodeId node : graph.nodes()) {
    NodeWork& own = work[node];
    if (CollectiveOf(graph, node)) {
      STRATA_TRY(own.job.us, cost.CollectiveUs(graph, node));
      STRATA_TRY(const bool is_inside, cost.IsInsideNodes(graph, node));
      own.machine = is_inside ? kInsideNodes : kBetweenNodes;
    } else {
      own.job.us = cost.ComputeUs(graph, node);
    }
    bound.serial_us += own.job.us;
    for (const NodeId input : InputsOf(graph, node)) {
      const Job& before = work[input].job;
      own.job.release_us = std::max(own.job.release_us, before.release_us + before.us);
    }
    bound.least_us = std::max(bound.least_us, own.job.release_us + own.job.us);
  }
  for (const NodeId node : graph.nodes().Snapshot() | std::views::reverse) {
    const Job& own = work[node].job;
    for (const NodeId input : InputsOf(graph, node)) {
      double& tail = work[input].job.tail_us;
      tail = std::max(tail, own.tail_us + own.us);
    }
  }
  std::array<std::vector<Job>, kMachines> machines;
  for (const NodeId node : graph.nodes())
    if (work[node].job.us > 0) machines[work[node].machine].push_back(work[node].job);
  for (std::vector<Job>& jobs : machines)
    bound.least_us = std::max(bound.least_us, JacksonEnd(std::move(jobs)));
  return bound;
}

}  // namespace strata
