#include "cli/prove/prove_ranks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "ir/module.h"
#include "passes/placement/placement.h"
#include "runtime/exec/executor.h"
#include "runtime/files/tensor_io.h"
#include "runtime/plan/input_sizes.h"
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

/// A plain plan of a graph for the sizes that it was traced with, which one thread at a time may
/// make.
Result<Executor> MakeExecutor(const Graph& graph, const NamedTensors& given) {
  STRATA_TRY(Plan plan, Lower(graph, {}, HintsOf(graph)));
  Constants constants;
  for (const Plan::Constant& constant : plan.constants) {
    const auto found = given.find(constant.path);
    if (found != given.end()) constants.emplace_back(constant.path, found->second);
  }
  return Executor::Bind(std::move(plan), constants);
}

/// The largest difference relative to the largest number that is wanted; infinite where one is NaN
/// alone.
double RelativeDifference(const Tensor& tensor, const Tensor& wanted) {
  if (tensor.sizes() != wanted.sizes()) return std::numeric_limits<double>::infinity();
  if (wanted.numel() == 0) return 0.0;
  const auto exact = wanted.is_complex() ? at::kComplexDouble : at::kDouble;
  const Tensor a = tensor.to(exact), b = wanted.to(exact);
  const double largest = b.abs().max().item<double>();
  const double difference = a.sub(b).abs().max().item<double>();
  if (!(difference > 0.0)) return difference == 0.0 ? 0.0 : std::numeric_limits<double>::infinity();
  return difference / std::max(largest, std::numeric_limits<double>::min());
}

/// What sums in another order can make of a number that they do not cancel out.
double Tolerance(const Tensor& tensor) {
  const bool is_narrow = tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
  return is_narrow ? 0.05 : 1e-3;
}

/// The distance of 1 and the next number of the graph's narrowest floating-point type.
double CoarsestUnit(const Graph& graph) {
  constexpr std::array<std::pair<DType, double>, 4> kUnits = {{{DType::kBF16, 0x1p-7},
                                                               {DType::kF16, 0x1p-10},
                                                               {DType::kF32, 0x1p-23},
                                                               {DType::kF64, 0x1p-52}}};
  double coarsest = 0.0;
  for (const NodeId node : graph.nodes()) {
    for (size_t i = 0; i < graph.node(node).num_results; ++i) {
      const TypeId type = graph.value(graph.result(node, i)).type;
      if (!type.valid()) continue;
      const auto unit = std::ranges::find(kUnits, graph.module().types()[type].dtype,
                                          &std::pair<DType, double>::first);
      if (unit != kUnits.end()) coarsest = std::max(coarsest, unit->second);
    }
  }
  return coarsest;
}

/// Each number larger or smaller by half of `unit`: as far as rounding moves it.
Tensors Moved(const Tensors& tensors, double unit) {
  Tensors moved;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const Tensor& tensor = tensors[t];
    moved.push_back(tensor.clone());
    if (!tensor.is_floating_point() && !tensor.is_complex()) continue;
    const Tensor factors = tensor.new_empty(tensor.sizes(), at::kDouble);
    auto* values = factors.mutable_data_ptr<double>();
    for (int64_t i = 0; i < factors.numel(); ++i) {
      const bool up = (RandomBits(t, static_cast<uint64_t>(i)) & 1U) != 0;
      values[i] = 1.0 + (up ? unit : -unit) / 2;
    }
    const auto exact = tensor.is_complex() ? at::kComplexDouble : at::kDouble;
    moved.back().copy_(tensor.to(exact).mul(factors));
  }
  return moved;
}

/// Compares whole tensors with what the ranks' parts make.
class PartComparer {
 public:
  /// `parts`: by rank. `moved`: the whole that inputs make which are rounded otherwise. Where they
  /// make other numbers, as where large numbers cancel out, so may another order of sums.
  Status Add(const Tensor& whole, const Tensor& moved, const Sharding& sharding,
             const Tensors& parts, std::string_view what, size_t index) {
    if (!whole.defined()) return Ok();
    constexpr double kMoves = 16;  // a number is rounded more often than once
    const double difference = RelativeDifference(sharding.Gather(parts), whole);
    const double rounding = kMoves * RelativeDifference(moved, whole);
    largest_ = std::max(largest_, difference);
    if (difference <= std::max(Tolerance(whole), rounding)) return Ok();
    return Error(
        "pass lower changes values: {} {}: the ranks' parts make other numbers, by {:.2g} "
        "of the largest",
        what, index, difference);
  }
  double largest() const { return largest_; }

 private:
  double largest_ = 0.0;
};

/// Tensors after a graph ran: it may write its inputs.
struct GraphRun {
  Tensors inputs, outputs;
};

bool IsFinite(const GraphRun& run) {
  const auto is_finite = [](const Tensor& tensor) {
    return !tensor.defined() || !tensor.is_floating_point() || tensor.isfinite().all().item<bool>();
  };
  return std::ranges::all_of(run.outputs, is_finite) && std::ranges::all_of(run.inputs, is_finite);
}

Result<GraphRun> RunWhole(const Graph& graph, Tensors inputs, const NamedTensors& given) {
  STRATA_TRY(Executor executor, MakeExecutor(graph, given));
  STRATA_TRY(Tensors outputs, executor.Run(inputs));
  return GraphRun{.inputs = std::move(inputs), .outputs = std::move(outputs)};
}

Result<std::vector<GraphRun>> RunOnRanks(ThreadTeam& team, const Graph& graph,
                                         const std::vector<Sharding>& shardings,
                                         const Tensors& whole, const NamedTensors& given) {
  std::vector<GraphRun> runs(static_cast<size_t>(team.size()));
  std::mutex one_at_a_time;
  STRATA_RETURN_IF_ERROR(team.Run([&](int64_t rank) -> Status {
    GraphRun& run = runs[static_cast<size_t>(rank)];
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

Result<std::string> ProveLowering(const Graph& before, const Graph& after,
                                  std::initializer_list<const NamedTensors*> inputs) {
  STRATA_TRY(const Mesh mesh, MeshOf(after));
  STRATA_TRY(const std::vector<Sharding> of_inputs, InputShardings(after, mesh));
  STRATA_TRY(const std::vector<std::optional<Sharding>> of_outputs, OutputShardings(after, mesh));
  const NamedTensors* given = nullptr;
  GraphRun whole;
  for (const NamedTensors* tried : inputs) {
    if (given != nullptr && IsFinite(whole)) break;
    given = tried;
    STRATA_TRY(Tensors taken, TakeInputs(before, *given));
    STRATA_TRY(whole, RunWhole(before, std::move(taken), *given));
  }
  STRATA_TRY(const Tensors taken, TakeInputs(before, *given));
  ThreadTeam team(mesh);
  STRATA_TRY(const std::vector<GraphRun> ranks, RunOnRanks(team, after, of_inputs, taken, *given));
  STRATA_TRY(const GraphRun moved, RunWhole(before, Moved(taken, CoarsestUnit(before)), *given));

  PartComparer comparer;
  const auto parts = [&](Tensors GraphRun::* list, size_t index) {
    Tensors tensors;
    for (const GraphRun& run : ranks)
      tensors.push_back((run.*list)[index]);
    return tensors;
  };
  for (size_t i = 0; i < whole.outputs.size(); ++i) {
    if (!of_outputs[i]) continue;
    STRATA_RETURN_IF_ERROR(comparer.Add(whole.outputs[i], moved.outputs[i], *of_outputs[i],
                                        parts(&GraphRun::outputs, i), "output", i));
  }
  for (size_t i = 0; i < whole.inputs.size(); ++i) {
    STRATA_RETURN_IF_ERROR(comparer.Add(whole.inputs[i], moved.inputs[i], of_inputs[i],
                                        parts(&GraphRun::inputs, i), "input", i));
  }
  return fmt::format("{} outputs and {} inputs of {} ranks are within {:.2g} of those of one",
                     whole.outputs.size(), whole.inputs.size(), mesh.num_ranks(),
                     comparer.largest());
}

Result<ValueComparison> CompareValuesOnRanks(const Graph& before, const Graph& after,
                                             const MatchedGraphs& matched,
                                             const std::vector<NamedTensors>& inputs,
                                             const NamedTensors& more,
                                             const ValueTolerance& tolerance) {
  STRATA_TRY(const Mesh mesh, MeshOf(before));
  std::vector<ValueComparison> comparisons(static_cast<size_t>(mesh.num_ranks()));
  ThreadTeam team(mesh);
  STRATA_RETURN_IF_ERROR(team.Run([&](int64_t rank) -> Status {
    const NamedTensors& of_rank = inputs[static_cast<size_t>(rank)];
    NamedTensors after_inputs = TransferInputs(matched, of_rank);
    after_inputs.insert(more.begin(), more.end());
    STRATA_TRY(comparisons[static_cast<size_t>(rank)],
               CompareValues(before, after, matched.pairs, of_rank, after_inputs, tolerance));
    return Ok();
  }));
  const auto differing = std::ranges::find_if(
      comparisons, [](const ValueComparison& comparison) { return comparison.first() != nullptr; });
  return differing == comparisons.end() ? std::move(comparisons.front()) : std::move(*differing);
}

}  // namespace strata::cli
