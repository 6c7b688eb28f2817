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

Tensor HeadOf(const Tensor& a, int64_t batch, int64_t head) {
  return {a.domain(),
          a.storage(),
          {a.size(2), a.size(3)},
          {a.strides()[2], a.strides()[3]},
          a.offset() + batch * a.strides()[0] + head * a.strides()[1]};
}

Tensor Transposed(const Tensor& a) {
  return {a.domain(),
          a.storage(),
          {a.size(1), a.size(0)},
          {a.strides()[1], a.strides()[0]},
          a.offset()};
}

Status Check(const Attention& call) {
  const bool fits = call.query.dim() == 4 && call.key.dim() == 4 && call.value.dim() == 4 &&
                    call.key.size(1) > 0 && call.heads() % call.key.size(1) == 0 &&
                    call.key.sizes()[2] == call.value.sizes()[2];
  if (!fits) return Error(ErrorCode::kInvalid, "query, key and value that do not fit");
  return Ok();
}

Result<Attention> ReadAttention(const Call& call, size_t first, size_t causal) {
  Attention attention;
  STRATA_TRY(attention.query, call.TensorAt(first, "query"));
  STRATA_TRY(attention.key, call.TensorAt(first + 1, "key"));
  STRATA_TRY(attention.value, call.TensorAt(first + 2, "value"));
  STRATA_RETURN_IF_ERROR(Check(attention));
  attention.is_causal = call.FlagAt(causal, "is_causal");
  const auto width = static_cast<double>(attention.query.size(3));
  STRATA_TRY(attention.scale,
             call.NumberAt(SIZE_MAX, "scale", FromLiteral(1.0 / std::sqrt(width))));
  if (call.Find(SIZE_MAX, "attn_mask") != nullptr) {
    STRATA_TRY(Tensor mask, call.TensorAt(SIZE_MAX, "attn_mask"));
    STRATA_TRY(mask, ConvertTo(mask, Domain::kFloat)
                         .Expand({attention.batch(), attention.heads(), attention.query.size(2),
                                  attention.key.size(2)}));
    attention.mask = std::move(mask);
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

/// -> (output [batch, heads, rows, width], logsumexp [batch, heads, rows])
Result<Values> EvaluateForward(Call& call) {
  STRATA_TRY(const Attention a, ReadAttention(call, 0, 4));
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
    }
  }
  const int64_t rows = a.query.size(2);
  Tensor sum = OfWords(Domain::kFloat, {a.batch(), a.heads(), rows}, std::move(sums));
  Tensor logarithm = Apply(FunctionKey("log"), sum);
  Laws laws;
  laws.exponential = std::make_shared<const Tensor>(std::move(sum));
  logarithm.SetLaws(std::move(laws));
  return Values{
      OfWords(Domain::kFloat, {a.batch(), a.heads(), rows, a.value.size(3)}, std::move(outputs)),
      std::move(logarithm)};
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

/// (grad_out, query, key, value, out, logsumexp, dropout_p, is_causal) -> gradients of the three.
/// Dao, "FlashAttention-2", 2023, algorithm 2, without tiles.
Result<Values> EvaluateBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  STRATA_TRY(const Attention a, ReadAttention(call, 1, 7));
  STRATA_TRY(const Tensor output, call.TensorAt(4, "out"));
  STRATA_TRY(const Tensor logarithm, call.TensorAt(5, "logsumexp"));
  if (gradient.dim() != 4 || output.sizes() != gradient.sizes() || logarithm.dim() != 3)
    return Error(ErrorCode::kInvalid, "gradient, output and logsumexp that do not fit");
  const Tensor sums = Exp(logarithm);
  Tensor of_query(Domain::kFloat, a.query.sizes(), 0), of_key(Domain::kFloat, a.key.sizes(), 0),
      of_value(Domain::kFloat, a.value.sizes(), 0);
  for (int64_t batch = 0; batch < a.batch(); ++batch) {
    for (int64_t head = 0; head < a.heads(); ++head) {
      const int64_t key_head = a.KeyHead(head);
      const Tensor above = HeadOf(gradient, batch, head);
      const Tensor sum(Domain::kFloat, sums.storage(), {sums.size(2), 1}, {sums.strides()[2], 1},
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
  return Values{std::move(of_query), std::move(of_key), std::move(of_value)};
}

constexpr OpDefinition kAttentionOps[] = {
    {"aten._scaled_dot_product_flash_attention_for_cpu", EvaluateForward},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward", EvaluateBackward},
};

}  // namespace

std::span<const OpDefinition> AttentionOps() {
  return kAttentionOps;
}

}  // namespace strata::prove
