#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/arg.h"
#include "ir/fingerprint.h"
#include "ir/graph.h"
#include "ir/result.h"

namespace strata {

struct PlanOptions {
  /// Keep every value until the end of the run, so that each can be read afterwards.
  bool keep_values = false;
};

/// An argument of a step: a literal, or a slot that is read at run time.
struct PlanArg {
  ArgKind kind = ArgKind::kNone;
  int32_t slot = -1;    ///< kValue
  int64_t integer = 0;  ///< kInt, kBool
  double real = 0.0;    ///< kFloat
  DType dtype = DType::kUnknown;
  std::string text;               ///< kString, kDevice, kRaw
  std::vector<PlanArg> elements;  ///< kList, kTuple
};

/// A place for a value while the plan runs.
struct PlanSlot {
  ValueId value;
  std::string name;  ///< of the value in the graph
  std::string type;  ///< `f32[4, 32][32, 1]cpu`; empty when not known
};

/// One call of an operator.
struct PlanStep {
  NodeId node;
  std::string op;  ///< "aten.mm.default"
  std::vector<PlanArg> args;
  std::vector<std::pair<std::string, PlanArg>> kwargs;
  bool returns_tuple = false;
  std::vector<int32_t> results;  ///< slot per result; -1: nobody reads it
  /// Slots that nobody reads after this step, ascending. Their tensors go, unless a view of them
  /// lives on.
  std::vector<int32_t> kills;
  std::string where;  ///< "layers.0.attention.wo (runtime/models/llama3.cc:79)", for messages
};

/// A graph lowered for execution: what to call in which order, and when each value goes. Knows
/// nothing of tensors; an executor binds it to a library of operators.
struct Plan {
  struct Input {
    int32_t slot = -1;
    DType dtype = DType::kUnknown;
    std::vector<int64_t> sizes;
    std::optional<std::vector<int64_t>> strides;  ///< none: not known, any will do
  };
  struct Constant {
    int32_t slot = -1;
    std::string path;  ///< attribute path of its kGetAttr node
  };

  std::string graph;  ///< name
  PlanOptions options;
  Fingerprint graph_fingerprint;  ///< FingerprintScope::kComputation of what was lowered
  std::vector<PlanSlot> slots;
  std::vector<Input> inputs;  ///< in the order of the placeholders; never killed
  std::vector<Constant> constants;
  std::vector<PlanStep> steps;   ///< in the order of the nodes
  std::vector<int32_t> outputs;  ///< slots; -1 for an output that is none

  /// Of graph and options: equal plans do the same.
  Fingerprint fingerprint() const;
};

/// Lowers a graph as it stands; nothing is reordered, merged or left out.
///
/// Errors (kUnsupported): symbolic sizes, higher-order nodes, calls of methods or modules, inputs
/// that are no tensors.
Result<Plan> Lower(const Graph& graph, const PlanOptions& options = {});

/// `mm = aten.mm.default(view: f32[8, 4][4, 1]cpu, t: f32[4, 4][1, 4]cpu)`, for messages.
std::string Describe(const Plan& plan, const PlanStep& step);

}  // namespace strata
