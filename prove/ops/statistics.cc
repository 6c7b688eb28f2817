#include <cstdint>
#include <utility>
#include <variant>

#include "prove/ops/elementwise.h"
#include "prove/ops/reductions.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

struct Variance {
  Tensor variance, mean;
};

/// The dimensions of size 1 that a reduction left, if it is to keep them.
Tensor WithDims(const Tensor& reduced, const Sizes& dims, bool keep) {
  return keep ? reduced : SumOver(reduced, dims, false);
}

/// var.correction(self, dim, *, correction=1, keepdim), var.dim(self, dim, unbiased, keepdim),
/// var(self, unbiased)
Result<Variance> VarianceOf(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const bool has_correction = call.op().ends_with(".correction");
  const bool has_dims = has_correction || call.op().ends_with(".dim");
  STRATA_TRY(const Sizes dims, DimsAt(call, a, has_dims ? 1 : SIZE_MAX));
  Residue correction = 1;
  if (has_correction) {
    STRATA_TRY(correction, call.NumberAt(SIZE_MAX, "correction", 1));
  } else if (!call.FlagAt(has_dims ? 2 : 1, "unbiased", true)) {
    correction = 0;
  }
  const bool keeps = call.FlagAt(has_correction || !has_dims ? SIZE_MAX : 3, "keepdim");
  const Residue count = FromInteger(CountOver(a, dims));
  const Tensor mean = Scale(SumOver(a, dims, true), Inverse(count));
  STRATA_TRY(const Tensor distance, Sub(a, mean));
  STRATA_TRY(const Tensor squares, Mul(distance, distance));
  const Tensor variance = Scale(SumOver(squares, dims, true), Inverse(Sub(count, correction)));
  return Variance{WithDims(variance, dims, keeps), WithDims(mean, dims, keeps)};
}

Result<Tensor> RootOf(const Tensor& a) {
  Call root("aten.sqrt.default", {Argument{a}}, {}, 1);
  STRATA_TRY(const Values values, FindDefinition("aten.sqrt.default")->evaluate(root));
  return std::get<Tensor>(values[0]);
}

template <bool kRoot, bool kMean>
Result<Values> EvaluateVariance(Call& call) {
  STRATA_TRY(Variance result, VarianceOf(call));
  if (kRoot) {
    STRATA_TRY(result.variance, RootOf(result.variance));
  }
  Values values = {std::move(result.variance)};
  if (kMean) values.emplace_back(std::move(result.mean));
  return values;
}

constexpr OpDefinition kStatisticsOps[] = {
    {"aten.std", EvaluateVariance<true, false>},
    {"aten.std_mean", EvaluateVariance<true, true>},
    {"aten.var", EvaluateVariance<false, false>},
    {"aten.var_mean", EvaluateVariance<false, true>},
};

}  // namespace

std::span<const OpDefinition> StatisticsOps() {
  return kStatisticsOps;
}

}  // namespace strata::prove
