#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// fused(body, inputs…): what the body computes.
Result<Values> EvaluateFused(Call& call) {
  const auto* body = call.num_args() == 0 ? nullptr : std::get_if<GraphId>(&call.args()[0].value);
  if (body == nullptr || !call.run_body) return Error(ErrorCode::kInvalid, "no body");
  std::vector<Value> inputs;
  for (const Argument& argument : call.args().subspan(1)) {
    if (const auto* tensor = std::get_if<Tensor>(&argument.value)) {
      inputs.emplace_back(*tensor);
    } else if (const auto* number = std::get_if<int64_t>(&argument.value)) {
      inputs.emplace_back(*number);
    } else {
      return Error(ErrorCode::kUnsupported, "an input that is neither a tensor nor an integer");
    }
  }
  return call.run_body(*body, inputs);
}

constexpr OpDefinition kBodyOps[] = {
    {"strata.fused", EvaluateFused},
};

}  // namespace

std::span<const OpDefinition> BodyOps() {
  return kBodyOps;
}

}  // namespace strata::prove
