#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// What the body `call.args()[body]` computes of the arguments from `first` on.
Result<Values> EvaluateBody(Call& call, size_t body, size_t first) {
  const auto* graph =
      call.num_args() < first ? nullptr : std::get_if<GraphId>(&call.args()[body].value);
  if (graph == nullptr || !call.run_body) return Error(ErrorCode::kInvalid, "no body");
  std::vector<Value> inputs;
  for (const Argument& argument : call.args().subspan(first)) {
    if (const auto* tensor = std::get_if<Tensor>(&argument.value)) {
      inputs.emplace_back(*tensor);
    } else if (const auto* number = std::get_if<int64_t>(&argument.value)) {
      inputs.emplace_back(*number);
    } else {
      return Error(ErrorCode::kUnsupported, "an input that is neither a tensor nor an integer");
    }
  }
  return call.run_body(*graph, inputs);
}

/// fused(body, inputs…)
Result<Values> EvaluateFused(Call& call) {
  return EvaluateBody(call, 0, 1);
}

/// invoke_subgraph(body, name, inputs…)
Result<Values> EvaluateInvokeSubgraph(Call& call) {
  return EvaluateBody(call, 0, 2);
}

/// wrap_with_set_grad_enabled(enabled, body, inputs…): values do not depend on gradients.
Result<Values> EvaluateSetGradEnabled(Call& call) {
  return EvaluateBody(call, 1, 2);
}

/// wrap_with_autocast(device, dtype, enabled, caches, body, inputs…): casts between floating-point
/// types are identities.
Result<Values> EvaluateAutocast(Call& call) {
  return EvaluateBody(call, 4, 5);
}

constexpr OpDefinition kBodyOps[] = {
    {"higher_order.invoke_subgraph", EvaluateInvokeSubgraph},
    {"higher_order.wrap_with_autocast", EvaluateAutocast},
    {"higher_order.wrap_with_set_grad_enabled", EvaluateSetGradEnabled},
    {"strata.fused", EvaluateFused},
};

}  // namespace

std::span<const OpDefinition> BodyOps() {
  return kBodyOps;
}

}  // namespace strata::prove
