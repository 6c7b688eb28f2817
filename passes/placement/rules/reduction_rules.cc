#include <algorithm>
#include <string_view>
#include <vector>

#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// Every result keeps the dimensions that are not in `reduced`; those in it combine by `reduce`, or
/// are whole when it is empty.
void Reduce(RuleBuilder& b, const std::vector<size_t>& reduced, std::string_view reduce) {
  const size_t rank = b.operand_sizes(0).size();
  for (size_t result = 0; result < b.num_results(); ++result) {
    const bool keeps = b.result_sizes(result).size() == rank;
    for (size_t dim = 0, to = 0; dim < rank; ++dim) {
      const int index = b.operand_factor(0, dim);
      if (std::ranges::count(reduced, dim) == 0) {
        b.SetResult(result, to++, index);
        continue;
      }
      if (keeps) ++to;  // of size 1
      if (reduce.empty()) {
        b.MakeWhole(index);
      } else {
        b.MakeReduce(index, reduce);
      }
    }
  }
}

Status ReduceBy(RuleBuilder& b, std::string_view reduce) {
  Reduce(b, b.DimsArg(1, "dim", b.operand_sizes(0).size()), reduce);
  return Ok();
}

Status Sum(RuleBuilder& b) {
  b.rule().linear = {{0}};
  b.rule().ends_with_zeros = b.EndsWithZeros(0);
  return ReduceBy(b, "sum");
}

/// Ranks with equally many elements each: the mean of their means.
Status Mean(RuleBuilder& b) {
  b.rule().linear = {{0}};
  return ReduceBy(b, "avg");
}

Status Max(RuleBuilder& b) {
  return b.num_results() == 1 ? ReduceBy(b, "max") : ReduceBy(b, "");
}

Status Min(RuleBuilder& b) {
  return b.num_results() == 1 ? ReduceBy(b, "min") : ReduceBy(b, "");
}

/// (x, k, dim): the value, and its index.
Status KthValue(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  Reduce(b, {b.DimArg(2, "dim", rank).value_or(rank == 0 ? 0 : rank - 1)}, "");
  return Ok();
}

/// The norm of the norms of parts is the norm of the whole, for the Euclidean one.
Status VectorNorm(RuleBuilder& b) {
  const Arg* order = b.FindArg(1, "ord");
  const bool is_euclidean = order == nullptr ||
                            (order->kind() == ArgKind::kInt && order->as_int() == 2) ||
                            (order->kind() == ArgKind::kFloat && order->as_float() == 2.0);
  Reduce(b, b.DimsArg(2, "dim", b.operand_sizes(0).size()), is_euclidean ? "norm2" : "");
  b.rule().ends_with_zeros = b.EndsWithZeros(0);
  // Norms of norms stay partial when every element is reduced; one of summands is not a summand.
  if (is_euclidean && b.result_sizes(0).empty()) b.rule().kept_reduce = b.module().Intern("norm2");
  return Ok();
}

/// The dimension of argument 1 is looked at as one.
Status AlongDim(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  const auto dim = b.DimArg(1, "dim", rank);
  Reduce(b, {dim.value_or(rank == 0 ? 0 : rank - 1)}, "");
  for (size_t result = 0; result < b.num_results(); ++result)
    if (b.result_sizes(result).size() == rank && rank > 0)
      b.MakeWhole(b.result_factor(result, dim.value_or(rank - 1)));
  return Ok();
}

/// (x, y) or (x), of which vectors are along a dimension.
Status AlongKeyword(RuleBuilder& b) {
  const size_t rank = b.result_sizes(0).size();
  const size_t along = b.DimArg(SIZE_MAX, "dim", rank).value_or(rank - 1);
  for (size_t operand = 0; operand < b.num_operands(); ++operand) {
    if (!b.AreEqual(b.operand_sizes(operand), b.result_sizes(0))) {
      b.MakeAllWhole();
      return Ok();
    }
    b.rule().operands[operand] = b.rule().results[0];
  }
  b.MakeWhole(b.result_factor(0, along));
  return Ok();
}

/// What parts cannot be combined of: a rank needs all elements that go into a result.
Status OfAll(RuleBuilder& b) {
  return ReduceBy(b, "");
}

/// Every rank has all of every tensor.
Status WholeTensors(RuleBuilder& b) {
  b.MakeAllWhole();
  return Ok();
}

/// x, or a gradient and x, of which two halves of a dimension make one.
Status Halves(RuleBuilder& b) {
  const bool is_backward = b.num_operands() == 2;
  const size_t rank = b.result_sizes(0).size();
  const size_t along = b.DimArg(is_backward ? 2 : 1, "dim", rank).value_or(rank - 1);
  for (size_t operand = 0; operand < b.num_operands(); ++operand) {
    for (size_t dim = 0; dim < rank; ++dim) {
      if (dim != along) b.SetOperand(operand, dim, b.result_factor(0, dim));
      if (dim == along) b.MakeWhole(b.operand_factor(operand, dim));
    }
  }
  b.MakeWhole(b.result_factor(0, along));
  return Ok();
}

/// A transform over the dimensions of argument 1, of which the last may become shorter or longer.
Status Fourier(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  const std::vector<size_t> along = b.DimsArg(1, "dim", rank);
  for (size_t dim = 0; dim < rank; ++dim) {
    if (std::ranges::count(along, dim) == 0) {
      b.SetResult(0, dim, b.operand_factor(0, dim));
    } else {
      b.MakeWhole(b.operand_factor(0, dim));
      b.MakeWhole(b.result_factor(0, dim));
    }
  }
  b.rule().linear = {{0}};
  return Ok();
}

Status CumulativeSum(RuleBuilder& b) {
  b.rule().linear = {{0}};
  return AlongDim(b);
}

/// The rows of a dispatch are sorted by the experts that its tokens choose: each rank sorts those
/// of its own tokens.
Status Sort(RuleBuilder& b) {
  STRATA_RETURN_IF_ERROR(AlongDim(b));
  if (!b.IsDispatch()) return Ok();
  const int rows = b.result_factor(1, 0);
  if (!b.result_sizes(0).empty()) b.SetResult(0, 0, rows);
  b.OrderRows(b.operand_factor(0, 0), rows);
  return Ok();
}

/// Ranks exchange the largest logit and the sum of powers of each row.
Status LogSoftmax(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  const size_t along = b.DimArg(1, "dim", rank).value_or(rank - 1);
  for (size_t dim = 0; dim < rank; ++dim)
    b.SetResult(0, dim, b.operand_factor(0, dim));
  b.rule().joint = b.operand_factor(0, along);
  return Ok();
}

Status TopK(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  const size_t dim = b.DimArg(2, "dim", rank).value_or(rank - 1);
  Reduce(b, {dim}, "");
  for (size_t result = 0; result < b.num_results(); ++result)
    b.MakeWhole(b.result_factor(result, dim));
  return Ok();
}

/// How many of the last dimensions a norm is taken over: the length of its list of sizes.
size_t NumNormed(const RuleBuilder& b, size_t position) {
  const Arg* sizes = b.FindArg(position, "normalized_shape");
  return sizes != nullptr && sizes->is_span() ? b.graph().elements(*sizes).size() : 1;
}

/// (x [.., n], [n], weight [n], eps) → (like x, 1/rms [.., 1]): each row on its own. A layer norm
/// also has a bias, and a mean [.., 1].
Status RowNorm(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  const size_t rows = rank - std::min(rank, NumNormed(b, 1));
  for (size_t operand = 0; operand < b.num_operands(); ++operand) {
    for (size_t dim = operand == 0 ? rows : 0; dim < b.operand_sizes(operand).size(); ++dim)
      b.MakeWhole(b.operand_factor(operand, dim));
  }
  for (size_t result = 0; result < b.num_results(); ++result) {
    for (size_t dim = 0; dim < b.result_sizes(result).size(); ++dim) {
      if (dim < rows) b.SetResult(result, dim, b.operand_factor(0, dim));
      if (dim >= rows) b.MakeWhole(b.result_factor(result, dim));
    }
  }
  return Ok();
}

/// (of the result [.., n], x [.., n], [n], statistics [.., 1], weight [n]) → (of x, of weight): the
/// gradient of the weight is a sum over rows, and so is that of the bias.
Status RowNormBackward(RuleBuilder& b, size_t num_statistics) {
  const size_t rank = b.operand_sizes(0).size();
  const size_t rows = rank - std::min(rank, NumNormed(b, 2));
  for (size_t operand = 0; operand < b.num_operands(); ++operand) {
    const bool has_rows = operand < 2 + num_statistics;
    for (size_t dim = 0; dim < b.operand_sizes(operand).size(); ++dim) {
      if (has_rows && dim < rows) b.SetOperand(operand, dim, b.operand_factor(0, dim));
      if (!has_rows || dim >= rows) b.MakeWhole(b.operand_factor(operand, dim));
    }
  }
  for (size_t dim = 0; dim < b.result_sizes(0).size(); ++dim) {
    if (dim < rows) b.SetResult(0, dim, b.operand_factor(0, dim));
    if (dim >= rows) b.MakeWhole(b.result_factor(0, dim));
  }
  for (size_t result = 1; result < b.num_results(); ++result) {
    if (b.result_sizes(result).empty()) continue;
    for (size_t dim = 0; dim < rows; ++dim)
      b.MakeReduce(b.operand_factor(0, dim), "sum");
    b.MakeResultWhole(result);
  }
  b.rule().linear = {{0}};
  return Ok();
}

Status RmsNormBackward(RuleBuilder& b) {
  return RowNormBackward(b, 1);
}
Status LayerNormBackward(RuleBuilder& b) {
  return RowNormBackward(b, 2);
}

constexpr RuleEntry kReductionRules[] = {
    {"_cdist_backward", WholeTensors},
    {"_cdist_forward", WholeTensors},
    {"_embedding_bag", WholeTensors},
    {"_embedding_bag_backward", WholeTensors},
    {"_embedding_bag_dense_backward", WholeTensors},
    {"_euclidean_dist", WholeTensors},
    {"_fft_c2c", Fourier},
    {"_fft_c2r", Fourier},
    {"_fft_r2c", Fourier},
    {"_fused_rms_norm", RowNorm},
    {"_fused_rms_norm_backward", RmsNormBackward},
    {"_linalg_det", WholeTensors},
    {"_linalg_eigh", WholeTensors},
    {"_linalg_slogdet", WholeTensors},
    {"_linalg_solve_ex", WholeTensors},
    {"_linalg_svd", WholeTensors},
    {"_log_softmax", LogSoftmax},
    {"_safe_softmax", AlongDim},
    {"_softmax", AlongDim},
    {"_trilinear", WholeTensors},
    {"_weight_norm_interface", WholeTensors},
    {"_weight_norm_interface_backward", WholeTensors},
    {"affine_grid_generator", WholeTensors},
    {"all", OfAll},
    {"amax", Max},
    {"amin", Min},
    {"aminmax", OfAll},
    {"any", OfAll},
    {"argmax", OfAll},
    {"argmin", OfAll},
    {"argsort", AlongDim},
    {"block_diag", WholeTensors},
    {"cholesky_inverse", WholeTensors},
    {"cholesky_solve", WholeTensors},
    {"count_nonzero", OfAll},
    {"cummax", AlongDim},
    {"cummin", AlongDim},
    {"cumprod", AlongDim},
    {"cumsum", CumulativeSum},
    {"diag_embed", WholeTensors},
    {"dist", WholeTensors},
    {"glu", Halves},
    {"glu_backward", Halves},
    {"histc", WholeTensors},
    {"kthvalue", KthValue},
    {"linalg_cholesky_ex", WholeTensors},
    {"linalg_cross", AlongKeyword},
    {"linalg_eig", WholeTensors},
    {"linalg_inv_ex", WholeTensors},
    {"linalg_lu", WholeTensors},
    {"linalg_lu_factor_ex", WholeTensors},
    {"linalg_lu_solve", WholeTensors},
    {"linalg_matrix_exp", WholeTensors},
    {"linalg_qr", WholeTensors},
    {"linalg_solve_triangular", WholeTensors},
    {"linalg_vector_norm", VectorNorm},
    {"logcumsumexp", AlongDim},
    {"logsumexp", OfAll},
    {"lu_unpack", WholeTensors},
    {"masked_scatter", WholeTensors},
    {"max", Max},
    {"mean", Mean},
    {"median", OfAll},
    {"min", Min},
    {"mode", AlongDim},
    {"multi_margin_loss", WholeTensors},
    {"multi_margin_loss_backward", WholeTensors},
    {"multilabel_margin_loss_backward", WholeTensors},
    {"multilabel_margin_loss_forward", WholeTensors},
    {"nanmedian", OfAll},
    {"nansum", OfAll},
    {"native_layer_norm", RowNorm},
    {"native_layer_norm_backward", LayerNormBackward},
    {"norm", VectorNorm},
    {"prod", OfAll},
    {"renorm", WholeTensors},
    {"searchsorted", WholeTensors},
    {"sort", Sort},
    {"std", OfAll},
    {"std_mean", OfAll},
    {"sum", Sum},
    {"topk", TopK},
    {"trace", WholeTensors},
    {"var", OfAll},
    {"var_mean", OfAll},
};

}  // namespace

std::span<const RuleEntry> ReductionRules() {
  return kReductionRules;
}

}  // namespace strata
