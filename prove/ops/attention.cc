#include "ir/attention.h"

#include <cmath>

#include "prove/ops/elementwise.h"
#include "prove/ops/products.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// Query, key, value `[batch, heads, rows, width]`, and how their products become weights.
struct Attention {
  Tensor query, key, value;
  std::optional<Tensor> mask;  ///< added to the scores; [batch or 1, heads or 1, rows, keys]
  bool is_causal = false;
  Residue scale = 1;

  int64_t batch() const { return query.size(0); }
  int64_t heads() const { return query.size(1); }
  int64_t key_heads() const { return key.size(1); }
  /// Several heads of queries share a head of keys.
  int64_t KeyHead(int64_t head) const { return head / (heads() / key_heads()); }
};

Status Check(const Attention& call) {
  const bool fits = call.query.dim() == 4 && call.key.dim() == 4 && call.value.dim() == 4 &&
                    call.key.size(1) > 0 && call.heads() % call.key.size(1) == 0 &&
                    call.key.sizes()[2] == call.value.sizes()[2];
  if (!fits) return Error(ErrorCode::kInvalid, "query, key and value that do not fit");
  return Ok();
}

Result<std::optional<Tensor>> ReadMask(const Call& call, const AttentionOp& op) {
  const size_t position = op.mask == AttentionOp::Mask::kByPosition ? op.mask_position : SIZE_MAX;
  const std::string_view name =
      op.mask == AttentionOp::Mask::kByName ? AttentionOp::kMaskName : std::string_view();
  if (op.mask == AttentionOp::Mask::kNone || call.Find(position, name) == nullptr)
    return std::optional<Tensor>();
  STRATA_TRY(const Tensor mask, call.TensorAt(position, name));
  return std::optional(ConvertTo(mask, Domain::kFloat));
}

Result<Attention> ReadAttention(const Call& call, const AttentionOp& op) {
  Attention attention;
  STRATA_TRY(attention.query, call.TensorAt(op.query, "query"));
  STRATA_TRY(attention.key, call.TensorAt(op.query + 1, "key"));
  STRATA_TRY(attention.value, call.TensorAt(op.query + 2, "value"));
  STRATA_RETURN_IF_ERROR(Check(attention));
  STRATA_TRY(const Residue dropout, call.NumberAt(op.dropout, "dropout_p", 0));
  if (dropout != 0) return Error(ErrorCode::kUnsupported, "dropout");
  attention.is_causal = call.FlagAt(op.causal, "is_causal");
  const auto width = static_cast<double>(attention.query.size(3));
  STRATA_TRY(attention.scale,
             call.NumberAt(SIZE_MAX, "scale", FromLiteral(1.0 / std::sqrt(width))));
  STRATA_TRY(attention.mask, ReadMask(call, op));
  if (attention.mask) {
    STRATA_TRY(attention.mask,
               attention.mask->Expand({attention.batch(), attention.heads(),
                                       attention.query.size(2), attention.key.size(2)}));
  }
  return attention;
}

/// exp of the scores of one head, `[rows, keys]`; 0 where a query does not see a key.
Result<Tensor> Exponentials(const Attention& a, int64_t batch, int64_t head) {
  const Tensor query = HeadOf(a.query, batch, head), key = HeadOf(a.key, batch, a.KeyHead(head));
  STRATA_TRY(const Tensor products, MatrixProduct(query, Transposed(key)));
  Tensor scores = Scale(products, a.scale);
  if (a.mask) {
    STRATA_TRY(scores, Add(scores, HeadOf(*a.mask, batch, head)));
  }
  if (a.is_causal) {
    const int64_t rows = scores.size(0), keys = scores.size(1);
    scores = scores.Copy();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = row + 1; column < keys; ++column)
        scores.storage()->words[static_cast<size_t>(row * keys + column)] = kMinusInfinity;
    }
  }
  return Exp(scores);
}

/// -> (output [batch, heads, rows, width], logsumexp [batch, heads, rows], …). Nothing depends on
/// the states of generators and the lengths that follow.
Result<Values> EvaluateForward(Call& call) {
  const AttentionOp& op = *FindAttentionOp(call.op());
  STRATA_TRY(const Attention a, ReadAttention(call, op));
  const int64_t rows = a.query.size(2);
  const auto missing =
      static_cast<size_t>((op.rows_per_unit - rows % op.rows_per_unit) % op.rows_per_unit);
  std::vector<uint64_t> outputs, sums;
  for (int64_t batch = 0; batch < a.batch(); ++batch) {
    for (int64_t head = 0; head < a.heads(); ++head) {
      STRATA_TRY(const Tensor exponentials, Exponentials(a, batch, head));
      const Tensor sum = SumOver(exponentials, {1}, /*keep=*/true);
      STRATA_TRY(const Tensor weights, Div(exponentials, sum));
      STRATA_TRY(const Tensor output,
                 MatrixProduct(weights, HeadOf(a.value, batch, a.KeyHead(head))));
      const std::vector<uint64_t> words = output.Read(), of_rows = sum.Read();
      outputs.insert(outputs.end(), words.begin(), words.end());
      sums.insert(sums.end(), of_rows.begin(), of_rows.end());
      sums.insert(sums.end(), missing, 1);
    }
  }
  Sizes sizes = {a.batch(), a.heads(), rows + static_cast<int64_t>(missing)};
  if (op.ends_with_one) sizes.push_back(1);
  Tensor sum = OfWords(Domain::kFloat, std::move(sizes), std::move(sums));
  Tensor logarithm = Apply(FunctionKey("log"), sum);
  Laws laws;
  laws.exponential = std::make_shared<const Tensor>(std::move(sum));
  logarithm.SetLaws(std::move(laws));
  Values results = {
      OfWords(Domain::kFloat, {a.batch(), a.heads(), rows, a.value.size(3)}, std::move(outputs)),
      std::move(logarithm)};
  results.resize(std::max(results.size(), call.num_results()));
  return results;
}

/// Adds `words` to the words of one head of `sums`.
void AddTo(const Tensor& sums, int64_t batch, int64_t head, const Tensor& part) {
  const Tensor target = HeadOf(sums, batch, head);
  const std::vector<uint64_t> words = part.Read();
  size_t next = 0;
  ForEachOffset(target, [&](int64_t at) {
    Residue& sum = target.storage()->words[static_cast<size_t>(at)];
    sum = prove::Add(sum, words[next++]);
  });
}

/// (grad_out, query, key, value, …) -> gradients of the three.
/// Dao, "FlashAttention-2", 2023, algorithm 2, without tiles.
Result<Values> EvaluateBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  const AttentionOp& op = *FindAttentionOp(call.op());
  STRATA_TRY(const Attention a, ReadAttention(call, op));
  STRATA_TRY(const Tensor output, call.TensorAt(op.output, "out"));
  STRATA_TRY(const Tensor logarithm, call.TensorAt(op.log_sums, "logsumexp"));
  if (gradient.dim() != 4 || output.sizes() != gradient.sizes() ||
      logarithm.dim() != (op.ends_with_one ? 4 : 3) || logarithm.size(2) < a.query.size(2))
    return Error(ErrorCode::kInvalid, "gradient, output and logsumexp that do not fit");
  const Tensor sums = Exp(logarithm);
  Tensor of_query(Domain::kFloat, a.query.sizes(), 0), of_key(Domain::kFloat, a.key.sizes(), 0),
      of_value(Domain::kFloat, a.value.sizes(), 0);
  for (int64_t batch = 0; batch < a.batch(); ++batch) {
    for (int64_t head = 0; head < a.heads(); ++head) {
      const int64_t key_head = a.KeyHead(head);
      const Tensor above = HeadOf(gradient, batch, head);
      const Tensor sum(Domain::kFloat, sums.storage(), {a.query.size(2), 1}, {sums.strides()[2], 1},
                       sums.offset() + batch * sums.strides()[0] + head * sums.strides()[1]);
      STRATA_TRY(const Tensor exponentials, Exponentials(a, batch, head));
      STRATA_TRY(const Tensor weights, Div(exponentials, sum));
      STRATA_TRY(const Tensor for_value, MatrixProduct(Transposed(weights), above));
      AddTo(of_value, batch, key_head, for_value);
      STRATA_TRY(const Tensor of_weights,
                 MatrixProduct(above, Transposed(HeadOf(a.value, batch, key_head))));
      STRATA_TRY(const Tensor shares, Mul(above, HeadOf(output, batch, head)));
      STRATA_TRY(const Tensor centered, Sub(of_weights, SumOver(shares, {1}, /*keep=*/true)));
      STRATA_TRY(const Tensor slopes, Mul(weights, centered));
      const Tensor of_scores = Scale(slopes, a.scale);
      STRATA_TRY(const Tensor for_query, MatrixProduct(of_scores, HeadOf(a.key, batch, key_head)));
      AddTo(of_query, batch, head, for_query);
      STRATA_TRY(const Tensor for_key,
                 MatrixProduct(Transposed(of_scores), HeadOf(a.query, batch, head)));
      AddTo(of_key, batch, key_head, for_key);
    }
  }
  Values results = {std::move(of_query), std::move(of_key), std::move(of_value)};
  results.resize(std::max(results.size(), call.num_results()));
  return results;
}

constexpr OpDefinition kAttentionOps[] = {
    {"aten._scaled_dot_product_cudnn_attention", EvaluateForward},
    {"aten._scaled_dot_product_cudnn_attention_backward", EvaluateBackward},
    {"aten._scaled_dot_product_efficient_attention", EvaluateForward},
    {"aten._scaled_dot_product_efficient_attention_backward", EvaluateBackward},
    {"aten._scaled_dot_product_flash_attention", EvaluateForward},
    {"aten._scaled_dot_product_flash_attention_backward", EvaluateBackward},
    {"aten._scaled_dot_product_flash_attention_for_cpu", EvaluateForward},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward", EvaluateBackward},
};

}  // namespace

std::span<const OpDefinition> AttentionOps() {
  return kAttentionOps;
}

}  // namespace strata::prove
