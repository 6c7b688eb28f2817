#include <algorithm>

#include "prove/ops/elementwise.h"
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

Residue InverseOfCount(const Tensor& a, const Sizes& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims)
    count *= a.size(dim);
  return Inverse(FromInteger(count));
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
  const Tensor mean = Scale(SumOver(squares, dims, /*keep=*/true), InverseOfCount(x, dims));
  STRATA_TRY(const Tensor shifted, Add(mean, Tensor(Domain::kFloat, {}, eps)));
  Call root("aten.rsqrt.default", {Argument{shifted}}, {}, 1);
  STRATA_TRY(Values inverse, FindDefinition(root.op())->evaluate(root));
  STRATA_TRY(const Tensor normed, Mul(x, std::get<Tensor>(inverse[0])));
  STRATA_TRY(Tensor result, Weighted(call, normed, 2));
  return Values{std::move(result), std::move(inverse[0])};
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
  const Tensor mean = Scale(SumOver(products, dims, /*keep=*/true), InverseOfCount(x, dims));
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

constexpr OpDefinition kNormOps[] = {
    {"aten._fused_rms_norm", EvaluateRmsNorm},
    {"aten._fused_rms_norm_backward", EvaluateRmsNormBackward},
};

}  // namespace

std::span<const OpDefinition> NormOps() {
  return kNormOps;
}

}  // namespace strata::prove
