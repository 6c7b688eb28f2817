#pragma once
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/result.h"
#include "ir/graph.h"
#include "runtime/exec/executor.h"
#include "runtime/files/tensor_io.h"

namespace strata {

/// A graph that ran outside of a training.
struct GraphRun {
  struct Input {
    ValueId value;
    std::string name;   ///< as InputName
    at::Tensor tensor;  ///< as the run left it
    at::Tensor before;  ///< as the run got it; undefined: the graph writes to no tensor

    bool IsWritten() const;
  };
  struct Output {
    ValueId value;
    std::string name;   ///< of the value; "": None
    at::Tensor tensor;  ///< undefined: None
  };

  std::vector<Input> inputs;
  std::vector<Output> outputs;

  /// Null: the run has no such value.
  const Input* FindInput(ValueId value) const;
  const Output* FindOutput(ValueId value) const;

  /// The outputs by name; what is given out twice has one name and is stored once. After them
  /// inputs that the run wrote to.
  std::vector<std::pair<std::string, at::Tensor>> Results() const;
};

/// Runs a graph on copies of `inputs` (TakeInputs), among which are its constants, by their
/// attribute paths. Random numbers are the same in every run.
/// Errors: a graph that cannot be executed, an input that is missing or does not fit.
Result<GraphRun> RunGraph(const Graph& graph, const NamedTensors& inputs,
                          ExecutionObserver* observer = nullptr);

}  // namespace strata
