#include "cli/prove/prove_ranks.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "passes/placement/placement.h"
#include "runtime/exec/executor.h"
#include "runtime/files/tensor_io.h"
#include "runtime/plan/plan.h"
#include "runtime/ranks/collectives.h"
#include "runtime/ranks/sharding.h"
#include "runtime/ranks/thread_team.h"

namespace strata::cli {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

Result<Mesh> MeshOf(const Graph& graph) {
  return Mesh::Parse(graph.attribute(graph.output(), kMeshAttribute));
}

/// A plain plan of a graph, which one thread at a time may make.
Result<Executor> MakeExecutor(const Graph& graph, const NamedTensors& given) {
  STRATA_TRY(Plan plan, Lower(graph));
  Constants constants;
  for (const Plan::Constant& constant : plan.constants) {
    const auto found = given.find(constant.path);
    if (found != given.end()) constants.emplace_back(constant.path, found->second);
  }
  return Executor::Bind(std::move(plan), constants);
}

/// The largest difference relative to the largest number; infinite where one is NaN alone.
double RelativeDifference(const Tensor& tensor, const Tensor& wanted) {
  if (tensor.sizes() != wanted.sizes()) return std::numeric_limits<double>::infinity();
  if (wanted.numel() == 0) return 0.0;
  const Tensor a = tensor.to(at::kDouble), b = wanted.to(at::kDouble);
  const double largest = b.abs().max().item<double>();
  const double difference = a.sub(b).abs().max().item<double>();
  if (!(difference > 0.0)) return difference == 0.0 ? 0.0 : std::numeric_limits<double>::infinity();
  return difference / std::max(largest, std::numeric_limits<double>::min());
}

/// What sums in another order can make of a number.
double Tolerance(const Tensor& tensor) {
  const bool is_narrow = tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
  return is_narrow ? 0.05 : 1e-3;
}

/// Compares whole tensors with what the ranks' parts make.
class PartComparer {
 public:
  /// `parts`: by rank.
  Status Add(const Tensor& whole, const Sharding& sharding, const Tensors& parts,
             std::string_view what, size_t index) {
    if (!whole.defined()) return Ok();
    const double difference = RelativeDifference(sharding.Gather(parts), whole);
    largest_ = std::max(largest_, difference);
    if (difference <= Tolerance(whole)) return Ok();
    return Error(
        "pass lower changes values: {} {}: the ranks' parts make other numbers, by {:.2g} "
        "of the largest",
        what, index, difference);
  }
  double largest() const { return largest_; }

 private:
  double largest_ = 0.0;
};

struct RankRun {
  Tensors inputs, outputs;
};

Result<std::vector<RankRun>> RunOnRanks(ThreadTeam& team, const Graph& graph,
                                        const std::vector<Sharding>& shardings,
                                        const Tensors& whole, const NamedTensors& given) {
  std::vector<RankRun> runs(static_cast<size_t>(team.size()));
  std::mutex one_at_a_time;
  STRATA_RETURN_IF_ERROR(team.Run([&](int64_t rank) -> Status {
    RankRun& run = runs[static_cast<size_t>(rank)];
    for (size_t i = 0; i < whole.size(); ++i)
      run.inputs.push_back(shardings[i].Shard(whole[i], rank));
    std::unique_lock lock(one_at_a_time);
    STRATA_TRY(Executor executor, MakeExecutor(graph, given));
    lock.unlock();
    STRATA_TRY(run.outputs, executor.Run(run.inputs));
    return Ok();
  }));
  return runs;
}

}  // namespace

bool HasGlobalTypes(const Graph& graph) {
  return !graph.attribute(graph.output(), kGlobalTypeAttribute).empty();
}

Result<std::string> ProveLowering(const Graph& before, const Graph& after) {
  STRATA_TRY(const Mesh mesh, MeshOf(after));
  STRATA_TRY(const std::vector<Sharding> inputs, InputShardings(after, mesh));
  STRATA_TRY(const std::vector<std::optional<Sharding>> outputs, OutputShardings(after, mesh));
  STRATA_TRY(const NamedTensors given, DrawInputs(before, 0));
  STRATA_TRY(Tensors whole, TakeInputs(before, given));
  ThreadTeam team(mesh);
  STRATA_TRY(const std::vector<RankRun> runs, RunOnRanks(team, after, inputs, whole, given));
  STRATA_TRY(Executor executor, MakeExecutor(before, given));
  STRATA_TRY(const Tensors whole_outputs, executor.Run(whole));  // writes inputs in place

  PartComparer comparer;
  const auto parts = [&](Tensors RankRun::* list, size_t index) {
    Tensors tensors;
    for (const RankRun& run : runs)
      tensors.push_back((run.*list)[index]);
    return tensors;
  };
  for (size_t i = 0; i < whole_outputs.size(); ++i) {
    if (!outputs[i]) continue;
    STRATA_RETURN_IF_ERROR(
        comparer.Add(whole_outputs[i], *outputs[i], parts(&RankRun::outputs, i), "output", i));
  }
  for (size_t i = 0; i < whole.size(); ++i) {
    STRATA_RETURN_IF_ERROR(
        comparer.Add(whole[i], inputs[i], parts(&RankRun::inputs, i), "input", i));
  }
  return fmt::format("{} outputs and {} inputs of {} ranks are within {:.2g} of those of one",
                     whole_outputs.size(), whole.size(), mesh.num_ranks(), comparer.largest());
}

Result<ValueComparison> CompareValuesOnRanks(const Graph& before, const Graph& after,
                                             const MatchedGraphs& matched,
                                             const ValueTolerance& tolerance) {
  STRATA_TRY(const Mesh mesh, MeshOf(before));
  STRATA_TRY(const std::vector<Sharding> shardings, InputShardings(before, mesh));
  std::vector<NamedTensors> draws;  // by part: ranks that hold the same part read the same
  for (int64_t part = 0; part < mesh.num_ranks(); ++part) {
    STRATA_TRY(NamedTensors drawn, DrawInputs(before, static_cast<uint64_t>(part)));
    draws.push_back(std::move(drawn));
  }
  const std::vector<NodeId> placeholders = before.placeholders();
  STRATA_TRY(const NamedTensors more, DrawInputs(after, 0));
  std::vector<ValueComparison> comparisons(static_cast<size_t>(mesh.num_ranks()));
  ThreadTeam team(mesh);
  STRATA_RETURN_IF_ERROR(team.Run([&](int64_t rank) -> Status {
    NamedTensors inputs = draws[0];
    for (size_t i = 0; i < placeholders.size(); ++i) {
      const std::string name = InputName(before, placeholders[i]);
      inputs[name] = draws[static_cast<size_t>(shardings[i].PartOf(rank))].at(name);
    }
    NamedTensors after_inputs = TransferInputs(matched, inputs);
    after_inputs.insert(more.begin(), more.end());
    STRATA_TRY(comparisons[static_cast<size_t>(rank)],
               CompareValues(before, after, matched.pairs, inputs, after_inputs, tolerance));
    return Ok();
  }));
  const auto differing = std::ranges::find_if(
      comparisons, [](const ValueComparison& comparison) { return comparison.first() != nullptr; });
  return differing == comparisons.end() ? std::move(comparisons.front()) : std::move(*differing);
}

}  // namespace strata::cli
