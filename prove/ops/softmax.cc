#include <utility>

#include "prove/ops/elementwise.h"
#include "prove/ops/reductions.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

Result<Sizes> DimAt(const Call& call, const Tensor& a, size_t position) {
  const int64_t dim = call.IntegerAt(position, "dim", -1);
  const int64_t from_front = dim < 0 ? dim + a.dim() : dim;
  if (from_front < 0 || from_front >= a.dim())
    return Error(ErrorCode::kInvalid, "dimension {} of a tensor with {}", dim, a.dim());
  return Sizes{from_front};
}

/// exp(x) and its sum over `dims`, which are kept.
std::pair<Tensor, Tensor> Exponentials(const Tensor& a, const Sizes& dims) {
  Tensor exponentials = Exp(a);
  Tensor sum = SumOver(exponentials, dims, /*keep=*/true);
  return {std::move(exponentials), std::move(sum)};
}

/// The same for every shift of x: exp(x) / sum of exp(x).
Result<Values> EvaluateSoftmax(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Sizes dims, DimAt(call, a, 1));
  const auto [exponentials, sum] = Exponentials(a, dims);
  STRATA_TRY(Tensor result, Div(exponentials, sum));
  return Values{std::move(result)};
}

/// A softmax that is 0 in rows without a number above -inf.
/// Source: ATen/native/transformers/attention.cpp.
Result<Values> EvaluateSafeSoftmax(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Sizes dims, DimAt(call, a, 1));
  const Tensor finite =
      Map(a, Domain::kFloat, [](Residue x) { return x == kMinusInfinity ? Residue{0} : 1; });
  const Tensor count = SumOver(finite, dims, /*keep=*/true);
  const auto [exponentials, sum] = Exponentials(a, dims);
  STRATA_TRY(const Tensor divisor, Map(sum, count, Domain::kFloat, [](Residue x, Residue n) {
               return n == 0 ? Residue{1} : x;
             }));
  STRATA_TRY(Tensor result, Div(exponentials, divisor));
  return Values{std::move(result)};
}

/// x - log of the sum of exp(x); its exponential is the softmax.
Result<Values> EvaluateLogSoftmax(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Sizes dims, DimAt(call, a, 1));
  const auto [exponentials, sum] = Exponentials(a, dims);
  STRATA_TRY(const Tensor softmax, Div(exponentials, sum));
  STRATA_TRY(Tensor result, Sub(a, Apply(FunctionKey("log"), sum)));
  Laws laws;
  laws.exponential = std::make_shared<const Tensor>(softmax);
  result.SetLaws(std::move(laws));
  return Values{std::move(result)};
}

/// logsumexp(self, dims, keepdim)
Result<Values> EvaluateLogSumExp(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Sizes dims, DimsAt(call, a, 1));
  const Tensor sum = SumOver(Exp(ConvertTo(a, Domain::kFloat)), dims, call.FlagAt(2, "keepdim"));
  Call log("aten.log.default", {Argument{sum}}, {}, 1);
  return FindDefinition(log.op())->evaluate(log);
}

/// _softmax_backward_data(grad_output, output, dim): y (g - sum of g y)
Result<Values> EvaluateSoftmaxBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor output, call.TensorAt(1));
  STRATA_TRY(const Sizes dims, DimAt(call, output, 2));
  STRATA_TRY(const Tensor product, Mul(gradient, output));
  STRATA_TRY(const Tensor share, Mul(output, SumOver(product, dims, /*keep=*/true)));
  STRATA_TRY(Tensor result, Sub(product, share));
  return Values{std::move(result)};
}

/// _log_softmax_backward_data(grad_output, output, dim): g - exp(y) sum of g
Result<Values> EvaluateLogSoftmaxBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor output, call.TensorAt(1));
  STRATA_TRY(const Sizes dims, DimAt(call, output, 2));
  STRATA_TRY(const Tensor share, Mul(Exp(output), SumOver(gradient, dims, /*keep=*/true)));
  STRATA_TRY(Tensor result, Sub(gradient, share));
  return Values{std::move(result)};
}

constexpr OpDefinition kSoftmaxOps[] = {
    {"aten._log_softmax", EvaluateLogSoftmax},
    {"aten._log_softmax_backward_data", EvaluateLogSoftmaxBackward},
    {"aten._safe_softmax", EvaluateSafeSoftmax},
    {"aten._softmax", EvaluateSoftmax},
    {"aten._softmax_backward_data", EvaluateSoftmaxBackward},
    {"aten.logsumexp", EvaluateLogSumExp},
};

}  // namespace

std::span<const OpDefinition> SoftmaxOps() {
  return kSoftmaxOps;
}

}  // namespace strata::prove
