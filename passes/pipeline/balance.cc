#include "passes/pipeline/balance.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "ir/module.h"
#include "passes/budget/budget.h"
#include "passes/core/collectives.h"
#include "passes/core/fsdp_patterns.h"
#include "passes/core/node_times.h"
#include "passes/pipeline/graph_copier.h"

namespace strata {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

/// Launches that make sharded parameters whole or reduce gradients.
std::set<NodeId> ParameterCollectives(const Graph& step) {
  std::set<NodeId> found;
  for (const NodeId node : step.placeholders()) {
    if (step.attribute(node, "input") != "parameter") continue;
    if (const NodeId gather = LastAllGatherFrom(step, node); gather.valid()) found.insert(gather);
  }
  for (const std::optional<ValueId> output : OutputsOf(step)) {
    if (!output) continue;
    const ValueId reduced = ReductionInput(step, *output);
    if (!reduced.valid()) continue;
    // The chain from the reduction to the output has one input at each node.
    for (ValueId value = *output; value != reduced;) {
      const NodeId node = step.value(value).def;
      found.insert(node);
      value = step.operands(node)[0];
    }
  }
  return found;
}

/// Each module as a stage of its own.
Result<StageModules> OneEach(const std::vector<std::string>& modules) {
  std::vector<std::vector<std::string>> stages;
  for (const std::string& module : modules)
    stages.push_back({module});
  return StageModules::Of(std::move(stages));
}

Result<std::vector<double>> ModelledTimes(const Graph& step, const StageModules& each,
                                          const std::string& topology) {
  STRATA_TRY(const MemoryCosts costs, CostsOf(step, topology));
  const std::set<NodeId> once = ParameterCollectives(step);
  std::vector<double> times(static_cast<size_t>(each.size()));
  for (const NodeId node : step.nodes()) {
    const int64_t number = each.StageOf(step.module().str(step.node(node).module));
    if (number < 0 || (CollectiveOf(step, node) && once.contains(node))) continue;
    times[static_cast<size_t>(number)] += costs.RecomputeUs(node);
  }
  return times;
}

Result<std::vector<double>> RecordedTimes(const StageModules& each, const std::string& path) {
  STRATA_TRY(const NodeTimes rows, ReadProfile(path));
  std::vector<double> times(static_cast<size_t>(each.size()));
  for (const auto& [module, us] : rows) {
    const int64_t number = each.StageOf(module);
    if (number >= 0) times[static_cast<size_t>(number)] += us;
  }
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] > 0) continue;
    return Error(
        "no time of module '{}': {}: record this model on one rank, and write the file with strata "
        "profile 'T#graph=step' --by module --json",
        each.of(static_cast<int64_t>(i))[0], path);
  }
  return times;
}

/// Divides what `cost` says of groups (begin, end) of `n` times, by the least total, which `join`
/// makes of the total of the groups before and the cost of the last one.
std::vector<size_t> Divide(size_t n, size_t count,
                           const std::function<double(size_t, size_t)>& cost,
                           const std::function<double(double, double)>& join) {
  // best[g][end]: of the first `end` times in `g` groups; begin[g][end]: where its last one begins.
  std::vector<std::vector<double>> best(count + 1, std::vector<double>(n + 1, kImpossible));
  std::vector<std::vector<size_t>> begin(count + 1, std::vector<size_t>(n + 1, 0));
  best[0][0] = 0;
  for (size_t group = 1; group <= count; ++group) {
    for (size_t end = group; end <= n; ++end) {
      for (size_t start = group - 1; start < end; ++start) {
        const double total = join(best[group - 1][start], cost(start, end));
        if (total >= best[group][end]) continue;
        best[group][end] = total;
        begin[group][end] = start;
      }
    }
  }
  std::vector<size_t> sizes(count);
  for (size_t group = count, end = n; group > 0; --group) {
    sizes[group - 1] = end - begin[group][end];
    end = begin[group][end];
  }
  return sizes;
}

}  // namespace

std::vector<size_t> DivideEvenly(std::span<const double> times, size_t count) {
  std::vector<double> until(times.size() + 1);
  for (size_t i = 0; i < times.size(); ++i)
    until[i + 1] = until[i] + times[i];
  const auto time_of = [&](size_t begin, size_t end) { return until[end] - until[begin]; };
  const auto larger = [](double a, double b) { return std::max(a, b); };
  double longest = 0;
  size_t begin = 0;
  for (const size_t size : Divide(times.size(), count, time_of, larger)) {
    longest = std::max(longest, time_of(begin, begin + size));
    begin += size;
  }
  const auto square_of = [&](size_t from, size_t to) {
    const double time = time_of(from, to);
    return time > longest ? kImpossible : time * time;
  };
  return Divide(times.size(), count, square_of, std::plus());
}

Result<StageModules> BalancedStages(const Graph& step, int64_t num_stages,
                                    const BalanceOptions& options) {
  const std::vector<std::string> modules = StageModules::Decoder(CountLayers(step));
  if (num_stages < 1) return Error("{} stages: a pipeline has at least 1", num_stages);
  if (static_cast<size_t>(num_stages) > modules.size()) {
    return Error("{} stages of {} modules: take at most {} stages", num_stages, modules.size(),
                 modules.size());
  }
  STRATA_TRY(const StageModules each, OneEach(modules));
  STRATA_TRY(const std::vector<double> times, options.times.empty()
                                                  ? ModelledTimes(step, each, options.topology)
                                                  : RecordedTimes(each, options.times));
  std::vector<std::vector<std::string>> stages;
  auto next = modules.begin();
  for (const size_t size : DivideEvenly(times, static_cast<size_t>(num_stages))) {
    stages.emplace_back(next, next + static_cast<ptrdiff_t>(size));
    next += static_cast<ptrdiff_t>(size);
  }
  return StageModules::Of(std::move(stages));
}

}  // namespace strata
