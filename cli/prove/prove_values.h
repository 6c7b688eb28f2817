#pragma once
#include <memory>
#include <utility>

#include "base/result.h"
#include "cli/prove/value_pairs.h"
#include "ir/module.h"
#include "passes/core/pass.h"
#include "runtime/exec/value_tolerance.h"
#include "runtime/files/tensor_io.h"

namespace strata::cli {

/// Runs every graph that a pass changed, before and after, on the same inputs, and compares them
/// node by node: a pipeline is value-neutral pass by pass, or ends at the pass that is not. Inputs
/// that are not given are synthetic. Lowered graphs run on all ranks of their mesh, on synthetic
/// inputs. A line on stderr for each graph.
class ProvePasses final : public PassInstrumentation {
 public:
  /// Values within `tolerance` are equal. `given` are inputs by their names.
  explicit ProvePasses(const ValueTolerance& tolerance, NamedTensors given = {})
      : tolerance_(tolerance), given_(std::move(given)) {}

  Status BeforePass(const PassRun& run, const Module& module) override;
  /// Errors: a value differs; the pass, the first node and the error are named.
  Status AfterPass(const PassRun& run, const Module& module) override;

 private:
  Result<ValueComparison> Compare(const Graph& before, const Graph& after,
                                  const MatchedGraphs& matched) const;

  Result<NamedTensors> InputsOf(const Graph& graph, Signs signs = Signs::kPositive) const;

  ValueTolerance tolerance_;
  NamedTensors given_;
  std::unique_ptr<Module> before_;
};

}  // namespace strata::cli
