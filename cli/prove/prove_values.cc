#include "cli/prove/prove_values.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/prove/prove_ranks.h"
#include "passes/core/chunk_attributes.h"
#include "passes/placement/placement.h"
#include "runtime/exec/compare_values.h"
#include "runtime/exec/graph_ranks.h"
#include "runtime/files/tensor_io.h"

namespace strata::cli {

namespace {

/// ` within 1e-05 of the largest`, as far as values may differ.
std::string ToleranceText(const ValueTolerance& tolerance) {
  std::string text;
  if (tolerance.ulps > 0.0) text = fmt::format(" within {:g} ulps", tolerance.ulps);
  if (tolerance.relative > 0.0) {
    text +=
        fmt::format("{} {:g} of the largest", text.empty() ? " within" : " or", tolerance.relative);
  }
  return text;
}

bool HasChunks(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](NodeId node) {
    return !graph.attribute(node, kChunkedOriginalAttribute).empty();
  });
}

/// Why the values of a pass that `strata prove` proves are not compared; "": they are.
std::string_view WhyNotExecuted(const Graph& before, const Graph& after) {
  if (HasChunks(after) && !HasChunks(before))
    return "sums over chunks are rounded otherwise; strata prove proves them";
  if (IsLowered(after) && !HasGlobalTypes(after))
    return "a part of a rank's program, which strata prove proves";
  return "";
}

}  // namespace

Status ProvePasses::BeforePass(const PassRun& /*run*/, const Module& module) {
  before_ = module.Clone();
  return Ok();
}

/// Given tensors of another type are those of another graph.
Result<NamedTensors> ProvePasses::InputsOf(const Graph& graph, Signs signs) const {
  STRATA_TRY(NamedTensors inputs, DrawInputs(graph, 0, signs));
  for (auto& [name, tensor] : inputs) {
    const auto found = given_.find(name);
    const bool fits = found != given_.end() && found->second.sizes() == tensor.sizes() &&
                      found->second.scalar_type() == tensor.scalar_type();
    if (fits) tensor = found->second;
  }
  return inputs;
}

Result<ValueComparison> ProvePasses::Compare(const Graph& before, const Graph& after,
                                             const MatchedGraphs& matched) const {
  if (HasGlobalTypes(after)) {
    STRATA_TRY(const std::optional<GraphRanks> ranks, GraphRanks::Of(before));
    STRATA_TRY(const std::vector<NamedTensors> inputs, ranks->Draw(0));
    STRATA_TRY(const NamedTensors more, DrawInputs(after, 0));
    return CompareValuesOnRanks(before, after, matched, inputs, more, tolerance_);
  }
  STRATA_TRY(const NamedTensors inputs, InputsOf(before));
  STRATA_TRY(NamedTensors more, InputsOf(after));
  NamedTensors after_inputs = TransferInputs(matched, inputs);
  after_inputs.merge(more);
  return CompareValues(before, after, matched.pairs, inputs, after_inputs, tolerance_);
}

Status ProvePasses::AfterPass(const PassRun& run, const Module& module) {
  for (const GraphChange& change : run.graphs) {
    const bool is_new = change.before == Fingerprint{};
    if (!change.changed() || is_new) continue;
    const Graph& before = before_->graph(change.graph);
    const Graph& after = module.graph(change.graph);
    if (HasGlobalTypes(after) && !HasGlobalTypes(before)) {
      STRATA_TRY(const NamedTensors of_both_signs, InputsOf(before, Signs::kBoth));
      STRATA_TRY(const NamedTensors positive, InputsOf(before, Signs::kPositive));
      STRATA_TRY(const std::string lowered,
                 ProveLowering(before, after, {&of_both_signs, &positive}));
      fmt::print(stderr, "proved: pass {} {}: graph {}: {}\n", run.index, run.name,
                 after.name_text(), lowered);
      continue;
    }
    if (const std::string_view why = WhyNotExecuted(before, after); !why.empty()) {
      fmt::print(stderr, "not executed: pass {} {}: graph {}: {}\n", run.index, run.name,
                 after.name_text(), why);
      continue;
    }
    STRATA_TRY(const MatchedGraphs matched, MatchGraphs(before, after, /*stable_ids=*/true));
    STRATA_TRY(const ValueComparison comparison, Compare(before, after, matched));
    if (comparison.first() != nullptr) {
      const bool is_exact = tolerance_.ulps == 0.0 && tolerance_.relative == 0.0;
      return Error("pass {} changes values: graph {}: {}{}", run.name, after.name_text(),
                   DescribeFirst(matched, comparison),
                   is_exact ? ": of a pass that may round otherwise, give --prove-tolerance" : "");
    }
    std::string what = fmt::format("{} values and {} outputs", comparison.nodes.compared,
                                   comparison.outputs.compared);
    if (const int64_t written = comparison.written.compared; written > 0) {
      what = fmt::format("{} values, {} outputs and {} written inputs", comparison.nodes.compared,
                         comparison.outputs.compared, written);
    }
    fmt::print(stderr, "proved: pass {} {}: graph {}: {} are equal{}\n", run.index, run.name,
               after.name_text(), what, ToleranceText(tolerance_));
  }
  before_.reset();
  return Ok();
}

}  // namespace strata::cli
