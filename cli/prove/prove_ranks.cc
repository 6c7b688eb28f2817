#include "cli/prove/prove_ranks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "ir/module.h"
#include "passes/placement/placement.h"
#include "runtime/exec/graph_ranks.h"
#include "runtime/exec/graph_run.h"
#include "runtime/files/tensor_io.h"
#include "runtime/plan/input_sizes.h"
#include "runtime/ranks/thread_team.h"

namespace strata::cli {
namespace {

using at::Tensor;

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

/// Each number of the graph's inputs larger or smaller by half of `unit`: as far as rounding moves
/// it.
NamedTensors Moved(const Graph& graph, NamedTensors tensors, double unit) {
  uint64_t key = 0;
  for (const NodeId input : GivenInputs(graph)) {
    Tensor& tensor = tensors.at(InputName(graph, input));
    const uint64_t seed = key++;
    if (!tensor.is_floating_point() && !tensor.is_complex()) continue;
    const Tensor factors = tensor.new_empty(tensor.sizes(), at::kDouble);
    auto* values = factors.mutable_data_ptr<double>();
    for (int64_t i = 0; i < factors.numel(); ++i) {
      const bool up = (RandomBits(seed, static_cast<uint64_t>(i)) & 1U) != 0;
      values[i] = 1.0 + (up ? unit : -unit) / 2;
    }
    const auto exact = tensor.is_complex() ? at::kComplexDouble : at::kDouble;
    tensor = tensor.clone().copy_(tensor.to(exact).mul(factors));
  }
  return tensors;
}

/// Compares tensors of one rank with the wholes that the ranks' parts make.
class WholeComparer {
 public:
  /// `moved`: the tensor that inputs make which are rounded otherwise. Where they make other
  /// numbers, as where large numbers cancel out, so may another order of sums.
  Status Add(const Tensor& tensor, const Tensor& moved, const Tensor& of_ranks,
             std::string_view what, size_t index) {
    if (!tensor.defined()) return Ok();
    constexpr double kMoves = 16;  // a number is rounded more often than once
    const double difference = RelativeDifference(of_ranks, tensor);
    const double rounding = kMoves * RelativeDifference(moved, tensor);
    largest_ = std::max(largest_, difference);
    if (difference <= std::max(Tolerance(tensor), rounding)) return Ok();
    return Error(
        "pass lower changes values: {} {}: the ranks' parts make other numbers, by {:.2g} "
        "of the largest",
        what, index, difference);
  }
  double largest() const { return largest_; }

 private:
  double largest_ = 0.0;
};

bool IsFinite(const GraphRun& run) {
  const auto is_finite = [](const auto& value) {
    const Tensor& tensor = value.tensor;
    return !tensor.defined() || !tensor.is_floating_point() || tensor.isfinite().all().item<bool>();
  };
  return std::ranges::all_of(run.outputs, is_finite) && std::ranges::all_of(run.inputs, is_finite);
}

}  // namespace

Result<std::string> ProveLowering(const Graph& before, const Graph& after,
                                  std::initializer_list<const NamedTensors*> inputs) {
  STRATA_TRY(const std::optional<GraphRanks> ranks, GraphRanks::Of(after));
  const NamedTensors* given = nullptr;
  GraphRun alone;
  for (const NamedTensors* tried : inputs) {
    if (given != nullptr && IsFinite(alone)) break;
    given = tried;
    STRATA_TRY(alone, RunGraph(before, *given));
  }
  STRATA_TRY(const std::vector<NamedTensors> parts, ranks->Share(*given));
  STRATA_TRY(const GraphRun together, ranks->Run(parts));
  STRATA_TRY(const GraphRun moved, RunGraph(before, Moved(before, *given, CoarsestUnit(before))));

  WholeComparer comparer;
  const auto compare = [&](auto list, std::string_view what) -> Status {
    for (size_t i = 0; i < (alone.*list).size(); ++i) {
      STRATA_RETURN_IF_ERROR(comparer.Add((alone.*list)[i].tensor, (moved.*list)[i].tensor,
                                          (together.*list)[i].tensor, what, i));
    }
    return Ok();
  };
  STRATA_RETURN_IF_ERROR(compare(&GraphRun::outputs, "output"));
  STRATA_RETURN_IF_ERROR(compare(&GraphRun::inputs, "input"));
  return fmt::format("{} outputs and {} inputs of {} ranks are within {:.2g} of those of one",
                     alone.outputs.size(), alone.inputs.size(), ranks->mesh().num_ranks(),
                     comparer.largest());
}

Result<ValueComparison> CompareValuesOnRanks(const Graph& before, const Graph& after,
                                             const MatchedGraphs& matched,
                                             const std::vector<NamedTensors>& inputs,
                                             const NamedTensors& more,
                                             const ValueTolerance& tolerance) {
  STRATA_TRY(const Mesh mesh, Mesh::Parse(before.attribute(before.output(), kMeshAttribute)));
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
