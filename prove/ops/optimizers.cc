#include <string>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

Tensor Number(Residue word) {
  return {Domain::kFloat, {}, word};
}

/// _foreach_norm([a, …], ord): the norm of each.
Result<Values> EvaluateNorms(Call& call) {
  STRATA_TRY(const std::vector<Tensor> tensors, call.TensorsAt(0));
  const Argument* order = call.Find(1, "ord");
  Values norms;
  for (const Tensor& tensor : tensors) {
    std::vector<Argument> args = {Argument{tensor}};
    if (order != nullptr) args.push_back(*order);
    Call of_one("aten.linalg_vector_norm.default", std::move(args), {}, 1);
    STRATA_TRY(Values norm, FindDefinition(of_one.op())->evaluate(of_one));
    norms.push_back(std::move(norm[0]));
  }
  return norms;
}

/// What the keywords of an update say.
struct Settings {
  Tensor lr, weight_decay, eps, gradient_factor;
  Residue beta1 = 0, beta2 = 0;
  bool is_decoupled = false;  ///< decay apart from the gradient: AdamW
};

Result<Settings> ReadSettings(const Call& call) {
  Settings settings;
  STRATA_TRY(settings.lr, call.TensorAt(SIZE_MAX, "lr"));
  STRATA_TRY(settings.weight_decay, call.TensorAt(SIZE_MAX, "weight_decay"));
  STRATA_TRY(settings.eps, call.TensorAt(SIZE_MAX, "eps"));
  STRATA_TRY(settings.beta1, call.NumberAt(SIZE_MAX, "beta1", 0));
  STRATA_TRY(settings.beta2, call.NumberAt(SIZE_MAX, "beta2", 0));
  settings.is_decoupled = call.op().starts_with("aten._fused_adamw_");
  settings.gradient_factor = Number(1);
  if (call.Find(SIZE_MAX, "grad_scale") != nullptr) {
    STRATA_TRY(const Tensor scale, call.TensorAt(SIZE_MAX, "grad_scale"));
    settings.gradient_factor = Reciprocal(scale);
  }
  if (call.FlagAt(SIZE_MAX, "amsgrad") || call.FlagAt(SIZE_MAX, "maximize") ||
      call.Find(SIZE_MAX, "found_inf") != nullptr)
    return Error(ErrorCode::kUnsupported, "amsgrad, maximize or found_inf");
  return settings;
}

/// 1 − beta^step
Result<Tensor> BiasCorrection(Residue beta, const Tensor& step) {
  Call power("aten.pow.Scalar", {Argument{Number(beta)}, Argument{step}}, {}, 1);
  STRATA_TRY(const Values result, FindDefinition(power.op())->evaluate(power));
  return Sub(Number(1), std::get<Tensor>(result[0]));
}

/// beta · a + (1 − beta) · b
Result<Tensor> Average(Residue beta, const Tensor& a, const Tensor& b) {
  return Add(Scale(a, beta), Scale(b, Sub(1, beta)));
}

Result<Tensor> Root(const Tensor& a) {
  Call root("aten.sqrt.default", {Argument{a}}, {}, 1);
  STRATA_TRY(const Values result, FindDefinition(root.op())->evaluate(root));
  return std::get<Tensor>(result[0]);
}

/// One tensor, in place.
/// Source: Loshchilov, Hutter, "Decoupled Weight Decay Regularization", 2019, algorithm 2.
Status Update(const Settings& settings, Tensor parameter, Tensor gradient, Tensor average,
              Tensor square_average, const Tensor& step) {
  STRATA_TRY(const Tensor scaled, Mul(gradient, settings.gradient_factor));
  STRATA_TRY(const Tensor decay, Mul(parameter, settings.weight_decay));
  Tensor slope = scaled, kept = parameter;
  if (settings.is_decoupled) {
    STRATA_TRY(const Tensor lost, Mul(decay, settings.lr));
    STRATA_TRY(kept, Sub(parameter, lost));
  } else {
    STRATA_TRY(slope, Add(scaled, decay));
  }
  STRATA_TRY(const Tensor squares, Mul(slope, slope));
  STRATA_TRY(const Tensor next_average, Average(settings.beta1, average, slope));
  STRATA_TRY(const Tensor next_square, Average(settings.beta2, square_average, squares));
  STRATA_TRY(const Tensor correction, BiasCorrection(settings.beta1, step));
  STRATA_TRY(const Tensor square_correction, BiasCorrection(settings.beta2, step));
  STRATA_TRY(const Tensor step_size, Div(settings.lr, correction));
  STRATA_TRY(const Tensor root, Root(next_square));
  STRATA_TRY(const Tensor root_of_correction, Root(square_correction));
  STRATA_TRY(const Tensor spread, Div(root, root_of_correction));
  STRATA_TRY(const Tensor denominator, Add(spread, settings.eps));
  STRATA_TRY(const Tensor direction, Div(next_average, denominator));
  STRATA_TRY(const Tensor change, Mul(direction, step_size));
  STRATA_TRY(const Tensor next, Sub(kept, change));
  parameter.Write(next.Read());
  average.Write(next_average.Read());
  square_average.Write(next_square.Read());
  gradient.Write(scaled.Read());
  return Ok();
}

/// _fused_adamw_([parameter, …], [gradient, …], [exp_avg, …], [exp_avg_sq, …], [], [step, …], lr=…)
Result<Values> EvaluateUpdates(Call& call) {
  STRATA_TRY(const Settings settings, ReadSettings(call));
  std::vector<std::vector<Tensor>> lists;
  for (const size_t position : {0, 1, 2, 3, 5}) {
    STRATA_TRY(std::vector<Tensor> list, call.TensorsAt(position));
    if (!lists.empty() && list.size() != lists[0].size())
      return Error(ErrorCode::kInvalid, "lists of {} and {} tensors", lists[0].size(), list.size());
    lists.push_back(std::move(list));
  }
  for (size_t i = 0; i < lists[0].size(); ++i) {
    STRATA_RETURN_IF_ERROR(Update(settings, lists[0][i], lists[1][i], lists[2][i], lists[3][i],
                                  ConvertTo(lists[4][i], Domain::kFloat)));
  }
  return Values(call.num_results());
}

constexpr OpDefinition kOptimizerOps[] = {
    {"aten._foreach_norm", EvaluateNorms},
    {"aten._fused_adam_", EvaluateUpdates},
    {"aten._fused_adamw_", EvaluateUpdates},
};

}  // namespace

std::span<const OpDefinition> OptimizerOps() {
  return kOptimizerOps;
}

}  // namespace strata::prove
