#include "prove/ops/norms.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "prove/ops/elementwise.h"
#include "prove/ops/reductions.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// The last dimensions, as many as the list of sizes at `position` has.
Result<Sizes> NormedDims(const Call& call, const Tensor& a, size_t position) {
  const auto sizes = call.IntegersAt(position, "normalized_shape");
  if (!sizes || static_cast<int64_t>(sizes->size()) > a.dim())
    return Error(ErrorCode::kInvalid, "sizes of a norm that are not those of its tensor");
  Sizes dims;
  for (int64_t dim = a.dim() - static_cast<int64_t>(sizes->size()); dim < a.dim(); ++dim)
    dims.push_back(dim);
  return dims;
}

Result<Tensor> Weighted(const Call& call, const Tensor& a, size_t position) {
  if (call.Find(position, "weight") == nullptr) return a;
  STRATA_TRY(const Tensor weight, call.TensorAt(position, "weight"));
  return Mul(a, weight);
}

/// _fused_rms_norm(x, normalized_shape, weight, eps) -> (x / rms · weight, 1 / rms)
Result<Values> EvaluateRmsNorm(Call& call) {
  STRATA_TRY(const Tensor x, call.TensorAt(0));
  STRATA_TRY(const Sizes dims, NormedDims(call, x, 1));
  if (call.Find(3, "eps") == nullptr) return Error(ErrorCode::kUnsupported, "a norm without eps");
  STRATA_TRY(const Residue eps, call.NumberAt(3, "eps", 0));
  STRATA_TRY(const Tensor squares, Mul(x, x));
  STRATA_TRY(Tensor inverse, InverseRoot(MeanOver(squares, dims), eps));
  STRATA_TRY(const Tensor normed, Mul(x, inverse));
  STRATA_TRY(Tensor result, Weighted(call, normed, 2));
  return Values{std::move(result), std::move(inverse)};
}

/// _fused_rms_norm_backward(g, x, normalized_shape, r, weight, mask), r = 1 / rms ->
/// (r (g w − x r² mean of g w x), sum over rows of g x r)
Result<Values> EvaluateRmsNormBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor x, call.TensorAt(1));
  STRATA_TRY(const Sizes dims, NormedDims(call, x, 2));
  STRATA_TRY(const Tensor inverse, call.TensorAt(3));
  STRATA_TRY(const Tensor weighted, Weighted(call, gradient, 4));
  STRATA_TRY(const Tensor products, Mul(weighted, x));
  const Tensor mean = MeanOver(products, dims);
  STRATA_TRY(const Tensor once, Mul(mean, inverse));
  STRATA_TRY(const Tensor share, Mul(once, inverse));
  STRATA_TRY(const Tensor shift, Mul(x, share));
  STRATA_TRY(const Tensor centered, Sub(weighted, shift));
  STRATA_TRY(Tensor of_x, Mul(centered, inverse));
  Values results = {std::move(of_x)};
  if (call.Find(4, "weight") != nullptr) {
    STRATA_TRY(const Tensor normed, Mul(x, inverse));
    STRATA_TRY(const Tensor of_rows, Mul(gradient, normed));
    Sizes rows;
    for (int64_t dim = 0; dim < dims.front(); ++dim)
      rows.push_back(dim);
    results.emplace_back(SumOver(of_rows, rows, /*keep=*/false));
  }
  results.resize(std::max(results.size(), call.num_results()));
  return results;
}

/// native_layer_norm(x, normalized_shape, weight, bias, eps) ->
/// ((x − mean) r · weight + bias, mean, r), r = 1 / deviation
Result<Values> EvaluateLayerNorm(Call& call) {
  STRATA_TRY(const Tensor x, call.TensorAt(0));
  STRATA_TRY(const Sizes dims, NormedDims(call, x, 1));
  STRATA_TRY(const Residue eps, call.NumberAt(4, "eps", 0));
  Tensor mean = MeanOver(x, dims);
  STRATA_TRY(const Tensor centered, Sub(x, mean));
  STRATA_TRY(const Tensor squares, Mul(centered, centered));
  STRATA_TRY(Tensor inverse, InverseRoot(MeanOver(squares, dims), eps));
  STRATA_TRY(const Tensor normed, Mul(centered, inverse));
  STRATA_TRY(Tensor result, Weighted(call, normed, 2));
  if (call.Find(3, "bias") != nullptr) {
    STRATA_TRY(const Tensor bias, call.TensorAt(3, "bias"));
    STRATA_TRY(result, Add(result, bias));
  }
  return Values{std::move(result), std::move(mean), std::move(inverse)};
}

/// native_layer_norm_backward(g, x, normalized_shape, mean, r, weight, bias, mask), n = (x − mean)
/// r
/// -> (r (g w − mean of g w − n · mean of g w n), sum over rows of g n, sum over rows of g)
Result<Values> EvaluateLayerNormBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Tensor x, call.TensorAt(1));
  STRATA_TRY(const Sizes dims, NormedDims(call, x, 2));
  STRATA_TRY(const Tensor mean, call.TensorAt(3));
  STRATA_TRY(const Tensor inverse, call.TensorAt(4));
  STRATA_TRY(const Tensor centered, Sub(x, mean));
  STRATA_TRY(const Tensor normed, Mul(centered, inverse));
  STRATA_TRY(const Tensor weighted, Weighted(call, gradient, 5));
  STRATA_TRY(Tensor of_x, GradientOfNorm(weighted, normed, inverse, dims));
  STRATA_TRY(const Tensor of_weight, Mul(gradient, normed));
  Sizes rows;
  for (int64_t dim = 0; dim < dims.front(); ++dim)
    rows.push_back(dim);
  const Sizes mask = call.IntegersAt(7, "output_mask").value_or(Sizes{1, 1, 1});
  Values results(std::max<size_t>(3, call.num_results()));
  if (mask[0] != 0) results[0] = std::move(of_x);
  if (mask[1] != 0) results[1] = SumOver(of_weight, rows, /*keep=*/false);
  if (mask[2] != 0) results[2] = SumOver(gradient, rows, /*keep=*/false);
  return results;
}

constexpr OpDefinition kNormOps[] = {
    {"aten._fused_rms_norm", EvaluateRmsNorm},
    {"aten._fused_rms_norm_backward", EvaluateRmsNormBackward},
    {"aten.native_layer_norm", EvaluateLayerNorm},
    {"aten.native_layer_norm_backward", EvaluateLayerNormBackward},
};

}  // namespace

Tensor MeanOver(const Tensor& a, const Sizes& dims) {
  return Scale(SumOver(a, dims, /*keep=*/true), Inverse(FromInteger(CountOver(a, dims))));
}

Result<Tensor> InverseRoot(const Tensor& a, Residue eps) {
  STRATA_TRY(const Tensor shifted, Add(a, Tensor(Domain::kFloat, {}, eps)));
  Call root("aten.rsqrt.default", {Argument{shifted}}, {}, 1);
  STRATA_TRY(Values inverse, FindDefinition(root.op())->evaluate(root));
  return std::get<Tensor>(std::move(inverse[0]));
}

Result<Tensor> GradientOfNorm(const Tensor& gradient, const Tensor& normed, const Tensor& inverse,
                              const Sizes& dims) {
  STRATA_TRY(const Tensor products, Mul(gradient, normed));
  STRATA_TRY(const Tensor share, Mul(normed, MeanOver(products, dims)));
  STRATA_TRY(const Tensor centered, Sub(gradient, MeanOver(gradient, dims)));
  STRATA_TRY(const Tensor rest, Sub(centered, share));
  return Mul(rest, inverse);
}

std::span<const OpDefinition> NormOps() {
  return kNormOps;
}

}  // namespace strata::prove
