#include "runtime/loops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/result.h"

namespace strata {

AttentionLoops::AttentionLoops(const Attention& shape, const Loops& loops, MatmulIsa isa)
    : s_(shape), loops_(loops), isa_(isa) {
  STRATA_CHECK(s_.queries <= Attention::kMostQueries && s_.keys <= Attention::kMostKeys &&
               s_.heads % s_.key_heads == 0);
  const auto size = [](int64_t rows, int64_t columns) {
    return static_cast<size_t>(rows * columns);
  };
  weights_.resize(size(Attention::kBlock, s_.keys));
  gradients_.resize(weights_.size());
  sums_.resize(size(std::max(Attention::kBlock, s_.keys), s_.head_dim));
}

void AttentionLoops::Multiply(const Matrix& a, const Matrix& b, int64_t rows, int64_t columns,
                              int64_t inner, float* c) const {
  RunMatmul({.rows = rows,
             .columns = columns,
             .inner = inner,
             .block = std::min(inner, kMaxMatmulBlock),
             .a = a.data,
             .a_row = a.row,
             .a_column = a.column,
             .b = b.data,
             .b_row = b.row,
             .b_column = b.column,
             .c = c,
             .c_row = columns},
            isa_);
}

void AttentionLoops::Forward(const float* q, const float* k, const float* v, float* out,
                             float* logsumexp) {
  const int64_t width = s_.head_dim, group = s_.heads / s_.key_heads;
  float* const weights = weights_.data();
  for (int64_t b = 0; b < s_.batch; ++b) {
    for (int64_t head = 0; head < s_.heads; ++head) {
      const float* const keys = k + s_.key.At(b, head / group, 0);
      const float* const values = v + s_.value.At(b, head / group, 0);
      for (int64_t first = 0; first < s_.queries; first += Attention::kBlock) {
        const int64_t rows = std::min(Attention::kBlock, s_.queries - first);
        Multiply({q + s_.query.At(b, head, first), s_.query.row, 1}, {keys, 1, s_.key.row}, rows,
                 s_.keys, width, weights);
        float most[Attention::kBlock], sums[Attention::kBlock];
        for (int64_t row = 0; row < rows; ++row) {
          float* const line = weights + row * s_.keys;
          const int64_t seen = s_.is_causal ? std::min(first + row + 1, s_.keys) : s_.keys;
          std::fill(line + seen, line + s_.keys, -std::numeric_limits<float>::infinity());
          most[row] = loops_.softmax_row(line, s_.keys, s_.scale, &sums[row]);
        }
        Multiply({weights, s_.keys, 1}, {values, s_.value.row, 1}, rows, width, s_.keys,
                 sums_.data());
        for (int64_t row = 0; row < rows; ++row) {
          // A row that sees no key is zero.
          const float sum = sums[row] == 0.0F ? 1.0F : sums[row], factor = 1.0F / sum;
          const float offset = std::isinf(most[row]) && most[row] < 0 ? 0.0F : most[row];
          float* const to = out + s_.out.At(b, head, first + row);
          for (int64_t d = 0; d < width; ++d)
            to[d] = sums_[static_cast<size_t>(row * width + d)] * factor;
          logsumexp[s_.logsumexp.At(b, head, first + row)] = offset + std::log(sum);
        }
      }
    }
  }
}

void AttentionLoops::Add(const std::vector<float>& sums, float scale, int64_t rows, float* to,
                         int64_t stride, bool is_first) const {
  const int64_t width = s_.head_dim;
  for (int64_t row = 0; row < rows; ++row) {
    const float* const from = sums.data() + row * width;
    float* const line = to + row * stride;
    for (int64_t d = 0; d < width; ++d) {
      const float old = is_first ? 0.0F : line[d];
      line[d] = s_.contracts_sums ? std::fma(scale, from[d], old) : scale * from[d] + old;
    }
  }
}

void AttentionLoops::BackwardBlock(int64_t b, int64_t head, int64_t first,
                                   const float* out_gradient, const float* q, const float* k,
                                   const float* v, const float* out, const float* logsumexp,
                                   const Gradients& gradients) {
  const int64_t width = s_.head_dim, group = s_.heads / s_.key_heads, key_head = head / group;
  const int64_t rows = std::min(Attention::kBlock, s_.queries - first), keys = s_.keys;
  const bool is_first = head % group == 0 && first == 0;
  const Matrix queries{q + s_.query.At(b, head, first), s_.query.row, 1};
  const Matrix key{k + s_.key.At(b, key_head, 0), s_.key.row, 1};
  const Matrix value{v + s_.value.At(b, key_head, 0), s_.value.row, 1};
  const Matrix given{out_gradient + s_.out_gradient.At(b, head, first), s_.out_gradient.row, 1};
  const auto transposed = [](const Matrix& m) { return Matrix{m.data, m.column, m.row}; };
  const Matrix weights{weights_.data(), keys, 1}, weight_gradients{gradients_.data(), keys, 1};

  Multiply(queries, transposed(key), rows, keys, width, weights_.data());
  for (int64_t row = 0; row < rows; ++row) {
    float* const line = weights_.data() + row * keys;
    for (int64_t n = 0; n < keys; ++n)
      line[n] *= s_.scale;
    loops_.exp_row(line, keys, logsumexp[s_.logsumexp.At(b, head, first + row)]);
    const int64_t seen = s_.is_causal ? std::min(first + row + 1, keys) : keys;
    std::fill(line + seen, line + keys, 0.0F);
  }
  Multiply(transposed(weights), given, keys, width, rows, sums_.data());
  Add(sums_, 1.0F, keys, gradients.value + s_.value_gradient.At(b, key_head, 0),
      s_.value_gradient.row, is_first);

  Multiply(given, transposed(value), rows, keys, width, gradients_.data());
  for (int64_t row = 0; row < rows; ++row) {
    const float dot = loops_.dot(given.data + row * given.row,
                                 out + s_.out.At(b, head, first + row), width, s_.contracts_dots);
    float* const line = gradients_.data() + row * keys;
    const float* const weight = weights_.data() + row * keys;
    for (int64_t n = 0; n < keys; ++n)
      line[n] = weight[n] * (line[n] - dot);
  }
  Multiply(weight_gradients, key, rows, width, keys, sums_.data());
  Add(sums_, s_.scale, rows, gradients.query + s_.query_gradient.At(b, head, first),
      s_.query_gradient.row, /*is_first=*/true);
  Multiply(transposed(weight_gradients), queries, keys, width, rows, sums_.data());
  Add(sums_, s_.scale, keys, gradients.key + s_.key_gradient.At(b, key_head, 0),
      s_.key_gradient.row, is_first);
}

void AttentionLoops::Backward(const float* out_gradient, const float* q, const float* k,
                              const float* v, const float* out, const float* logsumexp,
                              const Gradients& gradients) {
  for (int64_t b = 0; b < s_.batch; ++b) {
    for (int64_t head = 0; head < s_.heads; ++head) {
      for (int64_t first = 0; first < s_.queries; first += Attention::kBlock)
        BackwardBlock(b, head, first, out_gradient, q, k, v, out, logsumexp, gradients);
    }
  }
}

}  // namespace strata
