#include "runtime/codegen/flex_source.h"

namespace strata {

// Products are computed in tiles of registers; a vector of sums takes one fused multiply-add per
// number of the left operand. Rows of scratch memory are padded to whole vectors with zeros.
const std::string_view kFlexPreamble = R"code(#include <type_traits>
namespace {
#if defined(__AVX512F__)
typedef float strata_wide __attribute__((vector_size(64), aligned(4)));
constexpr int strata_rows = 8;
#else
typedef float strata_wide __attribute__((vector_size(32), aligned(4)));
constexpr int strata_rows = 4;
#endif
constexpr int64_t strata_lanes = sizeof(strata_wide) / sizeof(float);
constexpr int64_t strata_padded(int64_t n) { return (n + strata_lanes - 1) / strata_lanes * strata_lanes; }
#if defined(__clang__)
#define STRATA_FUSED __attribute__((noinline))
#define STRATA_FUSE _Pragma("clang fp contract(fast)")
#else
#define STRATA_FUSED __attribute__((noinline, optimize("fp-contract=fast")))
#define STRATA_FUSE
#endif

// R rows and V vectors of c += a b; a[m, k] is a[m * am + k * ak].
template <int R, int V, int64_t n>
STRATA_FUSED void strata_tile(const float* a, int64_t am, int64_t ak, const float* b, float* c, int64_t size) {
  STRATA_FUSE
  strata_wide sums[R][V];
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) sums[r][v] = *(const strata_wide*)(c + r * n + v * strata_lanes);
  for (int64_t k = 0; k < size; ++k) {
    strata_wide row[V];
    for (int v = 0; v < V; ++v) row[v] = *(const strata_wide*)(b + k * n + v * strata_lanes);
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < V; ++v) sums[r][v] += a[r * am + k * ak] * row[v];
  }
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < V; ++v) *(strata_wide*)(c + r * n + v * strata_lanes) = sums[r][v];
}

// c[rows, n] += a[rows, size] b[size, n]; n is a multiple of the lanes.
template <int64_t n>
inline void strata_product(const float* a, int64_t am, int64_t ak, const float* b, float* c, int64_t rows, int64_t size) {
  int64_t r = 0;
  for (; r + strata_rows <= rows; r += strata_rows) {
    int64_t i = 0;
    for (; i + 2 * strata_lanes <= n; i += 2 * strata_lanes)
      strata_tile<strata_rows, 2, n>(a + r * am, am, ak, b + i, c + r * n + i, size);
    for (; i < n; i += strata_lanes)
      strata_tile<strata_rows, 1, n>(a + r * am, am, ak, b + i, c + r * n + i, size);
  }
  for (; r < rows; ++r) {
    int64_t i = 0;
    for (; i + 2 * strata_lanes <= n; i += 2 * strata_lanes)
      strata_tile<1, 2, n>(a + r * am, am, ak, b + i, c + r * n + i, size);
    for (; i < n; i += strata_lanes)
      strata_tile<1, 1, n>(a + r * am, am, ak, b + i, c + r * n + i, size);
  }
}

// to[rows, n] of from[rows, width], whose rows are `stride` apart.
template <int64_t n, int64_t width, class T>
inline void strata_pack(const T* from, int64_t stride, float* to, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < width; ++i) to[r * n + i] = strata_load(from[r * stride + i]);
    for (int64_t i = width; i < n; ++i) to[r * n + i] = 0;
  }
}

// The same transposed: to[width, n] with a column per row.
template <int64_t n, int64_t width, class T>
inline void strata_pack_columns(const T* from, int64_t stride, float* to, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < width; ++i) to[i * n + r] = strata_load(from[r * stride + i]);
  for (int64_t i = 0; i < width; ++i)
    for (int64_t r = rows; r < n; ++r) to[i * n + r] = 0;
}

inline void strata_clear(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = 0;
}

inline float strata_magnitude(float x) { return strata_abs(x); }
inline int64_t strata_magnitude(int64_t x) { return x < 0 ? -x : x; }
inline int32_t strata_magnitude(int32_t x) { return x < 0 ? -x : x; }
// As ATen: towards minus infinity, also of whole numbers.
template <class A, class B> inline auto strata_floor_divide(A a, B b) {
  if constexpr (std::is_integral<A>::value && std::is_integral<B>::value) {
    if (b == 0) return (int64_t)0;
    const int64_t quotient = (int64_t)a / b;
    return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  } else {
    return std::floor((float)a / (float)b);
  }
}
template <class A, class B> inline auto strata_remainder(A a, B b) {
  return a - strata_floor_divide(a, b) * b;
}

constexpr float strata_ln2 = 0.693147180559945309f;

inline int64_t strata_min(int64_t a, int64_t b) { return a < b ? a : b; }

// A block of scores: modified, and -inf where the mask says so. `raw` may be null.
template <class S, bool is_full, int64_t n>
inline void strata_scores(const typename S::Buffers& buffers, float* scores, float* raw, int64_t b, int64_t h, int64_t q0, int64_t k0, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    float* const row = scores + r * n;
    const int32_t q = (int32_t)(q0 + r);
#pragma omp simd
    for (int64_t i = 0; i < columns; ++i) {
      const float score = row[i] * S::scale;
      const int32_t k = (int32_t)(k0 + i);
      if (raw != nullptr) raw[r * n + i] = score;
      float modified = S::score_mod(buffers, score, (int32_t)b, (int32_t)h, q, k);
      if (!is_full) modified = S::mask_mod(buffers, (int32_t)b, (int32_t)h, q, k) ? modified : -__builtin_inff();
      row[i] = modified;
    }
    for (int64_t i = columns; i < n; ++i) row[i] = -__builtin_inff();
  }
}

// The blocks of one row or column of a block mask.
struct strata_blocks {
  const int32_t *counts[2], *indices[2];  // partial, full
  int64_t count(int kind, int64_t row) const { return counts[kind][row]; }
};

template <class S>
inline int64_t strata_mask_row(int64_t b, int64_t h) {
  return (S::mask_batch == 1 ? 0 : b) * S::mask_heads + (S::mask_heads == 1 ? 0 : h);
}

template <class S>
void strata_flex_forward(void* const* arguments, int64_t begin, int64_t end) {
  using T = typename S::Element;
  constexpr int64_t width = strata_padded(S::width), value_width = strata_padded(S::value_width);
  constexpr int64_t key_block = strata_padded(S::key_block);
  constexpr int64_t query_blocks = (S::queries + S::query_block - 1) / S::query_block;
  constexpr int64_t key_blocks = (S::keys + S::key_block - 1) / S::key_block;
  static thread_local float query[S::query_block * width], keys[S::width * key_block], values[S::key_block * value_width], scores[S::query_block * key_block], sums[S::query_block * value_width], maxima[S::query_block], totals[S::query_block];
  const auto buffers = S::buffers_of(arguments);
  const int32_t* const* const blocks = (const int32_t* const*)(arguments + 3);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t block = unit % query_blocks, h = unit / query_blocks % S::heads, b = unit / query_blocks / S::heads;
    const int64_t q0 = block * S::query_block, rows = strata_min(S::query_block, S::queries - q0);
    const int64_t kv_head = h / (S::heads / S::kv_heads);
    const T* const key = (const T*)arguments[1] + b * S::key_strides[0] + kv_head * S::key_strides[1];
    const T* const value = (const T*)arguments[2] + b * S::value_strides[0] + kv_head * S::value_strides[1];
    strata_pack<width, S::width>((const T*)arguments[0] + b * S::query_strides[0] + h * S::query_strides[1] + q0 * S::query_strides[2], S::query_strides[2], query, rows);
    strata_clear(sums, rows * value_width);
    for (int64_t r = 0; r < rows; ++r) {
      maxima[r] = -__builtin_inff();
      totals[r] = 0;
    }
    const int64_t mask_row = strata_mask_row<S>(b, h) * query_blocks + block;
    for (int kind = 0; kind < 2; ++kind) {
      const int64_t count = blocks[2 * kind][mask_row];
      for (int64_t j = 0; j < count; ++j) {
        const int64_t k0 = blocks[2 * kind + 1][mask_row * key_blocks + j] * S::key_block;
        const int64_t columns = strata_min(S::key_block, S::keys - k0);
        strata_pack_columns<key_block, S::width>(key + k0 * S::key_strides[2], S::key_strides[2], keys, columns);
        strata_pack<value_width, S::value_width>(value + k0 * S::value_strides[2], S::value_strides[2], values, columns);
        strata_clear(scores, rows * key_block);
        strata_product<key_block>(query, width, 1, keys, scores, rows, S::width);
        if (kind == 0) {
          strata_scores<S, false, key_block>(buffers, scores, nullptr, b, h, q0, k0, rows, columns);
        } else {
          strata_scores<S, true, key_block>(buffers, scores, nullptr, b, h, q0, k0, rows, columns);
        }
        for (int64_t r = 0; r < rows; ++r) {
          float* const row = scores + r * key_block;
          float maximum = maxima[r];
#pragma omp simd reduction(max:maximum)
          for (int64_t i = 0; i < key_block; ++i) maximum = row[i] > maximum ? row[i] : maximum;
          const float base = maximum == -__builtin_inff() ? 0 : maximum;
          const float factor = strata_exp(maxima[r] - base);
          float total = 0;
#pragma omp simd reduction(+:total)
          for (int64_t i = 0; i < key_block; ++i) {
            row[i] = row[i] == -__builtin_inff() ? 0 : strata_exp(row[i] - base);
            total += row[i];
          }
          totals[r] = totals[r] * factor + total;
          maxima[r] = maximum;
          for (int64_t i = 0; i < value_width; ++i) sums[r * value_width + i] *= factor;
        }
        strata_product<value_width>(scores, key_block, 1, values, sums, rows, columns);
      }
    }
    T* const out = (T*)arguments[S::results] + b * S::out_strides[0] + h * S::out_strides[1] + q0 * S::out_strides[2];
    float* const logsumexp = (float*)arguments[S::results + 1] + (b * S::heads + h) * S::queries + q0;
    for (int64_t r = 0; r < rows; ++r) {
      const float inverse = totals[r] == 0 ? 0 : 1 / totals[r];
      for (int64_t i = 0; i < S::value_width; ++i) strata_store(out + r * S::out_strides[2] + i, sums[r * value_width + i] * inverse);
      logsumexp[r] = totals[r] == 0 ? -__builtin_inff() : (maxima[r] + std::log(totals[r])) / strata_ln2;
    }
  }
}

template <class S>
void strata_flex_backward(void* const* arguments, int64_t begin, int64_t end) {
  using T = typename S::Element;
  constexpr int64_t width = strata_padded(S::width), value_width = strata_padded(S::value_width);
  constexpr int64_t key_block = strata_padded(S::key_block), group = S::heads / S::kv_heads;
  constexpr int64_t query_blocks = (S::queries + S::query_block - 1) / S::query_block;
  constexpr int64_t key_blocks = (S::keys + S::key_block - 1) / S::key_block;
  static thread_local float query[S::query_block * width], gradient[S::query_block * value_width], keys[S::key_block * width], key_columns[S::width * key_block], value_columns[S::value_width * key_block], weights[S::query_block * key_block], raw[S::query_block * key_block], weight_gradients[S::query_block * key_block], key_gradients[S::key_block * width], value_gradients[S::key_block * value_width], deltas[group * S::queries], query_gradients[group * S::queries * width];
  const auto buffers = S::buffers_of(arguments);
  const int32_t* const* const blocks = (const int32_t* const*)(arguments + 6 + 4);
  const float* const logsumexps = (const float*)arguments[4];
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t kv_head = unit % S::kv_heads, b = unit / S::kv_heads, h0 = kv_head * group;
    const T* const key = (const T*)arguments[1] + b * S::key_strides[0] + kv_head * S::key_strides[1];
    const T* const value = (const T*)arguments[2] + b * S::value_strides[0] + kv_head * S::value_strides[1];
    strata_clear(query_gradients, group * S::queries * width);
    for (int64_t g = 0; g < group; ++g) {
      const T* const out = (const T*)arguments[3] + b * S::out_strides[0] + (h0 + g) * S::out_strides[1];
      const T* const grad = (const T*)arguments[5] + b * S::gradient_strides[0] + (h0 + g) * S::gradient_strides[1];
      for (int64_t q = 0; q < S::queries; ++q) {
        float sum = 0;
        for (int64_t i = 0; i < S::value_width; ++i) sum += strata_load(out[q * S::out_strides[2] + i]) * strata_load(grad[q * S::gradient_strides[2] + i]);
        deltas[g * S::queries + q] = sum;
      }
    }
    for (int64_t key_row = 0; key_row < key_blocks; ++key_row) {
      const int64_t k0 = key_row * S::key_block, columns = strata_min(S::key_block, S::keys - k0);
      strata_pack<width, S::width>(key + k0 * S::key_strides[2], S::key_strides[2], keys, columns);
      strata_pack_columns<key_block, S::width>(key + k0 * S::key_strides[2], S::key_strides[2], key_columns, columns);
      strata_pack_columns<key_block, S::value_width>(value + k0 * S::value_strides[2], S::value_strides[2], value_columns, columns);
      strata_clear(key_gradients, columns * width);
      strata_clear(value_gradients, columns * value_width);
      for (int64_t g = 0; g < group; ++g) {
        const int64_t h = h0 + g, mask_row = strata_mask_row<S>(b, h) * key_blocks + key_row;
        const float* const logsumexp = logsumexps + (b * S::heads + h) * S::queries;
        for (int kind = 0; kind < 2; ++kind) {
          const int64_t count = blocks[2 * kind][mask_row];
          for (int64_t j = 0; j < count; ++j) {
            const int64_t q0 = blocks[2 * kind + 1][mask_row * query_blocks + j] * S::query_block;
            const int64_t rows = strata_min(S::query_block, S::queries - q0);
            strata_pack<width, S::width>((const T*)arguments[0] + b * S::query_strides[0] + h * S::query_strides[1] + q0 * S::query_strides[2], S::query_strides[2], query, rows);
            strata_pack<value_width, S::value_width>((const T*)arguments[5] + b * S::gradient_strides[0] + h * S::gradient_strides[1] + q0 * S::gradient_strides[2], S::gradient_strides[2], gradient, rows);
            strata_clear(weights, rows * key_block);
            strata_clear(weight_gradients, rows * key_block);
            strata_product<key_block>(query, width, 1, key_columns, weights, rows, S::width);
            strata_product<key_block>(gradient, value_width, 1, value_columns, weight_gradients, rows, S::value_width);
            if (kind == 0) {
              strata_scores<S, false, key_block>(buffers, weights, raw, b, h, q0, k0, rows, columns);
            } else {
              strata_scores<S, true, key_block>(buffers, weights, raw, b, h, q0, k0, rows, columns);
            }
            for (int64_t r = 0; r < rows; ++r) {
              const float base = logsumexp[q0 + r] * strata_ln2, delta = deltas[g * S::queries + q0 + r];
              const int32_t q = (int32_t)(q0 + r);
#pragma omp simd
              for (int64_t i = 0; i < columns; ++i) {
                const int64_t at = r * key_block + i;
                const bool is_seen = weights[at] != -__builtin_inff();
                const float weight = is_seen ? strata_exp(weights[at] - base) : 0;
                const float modified = weight * (weight_gradients[at] - delta);
                const float score = S::joint(buffers, raw[at], modified, (int32_t)b, (int32_t)h, q, (int32_t)(k0 + i));
                weights[at] = weight;
                weight_gradients[at] = is_seen ? score * S::scale : 0;
              }
            }
            strata_product<value_width>(weights, 1, key_block, gradient, value_gradients, columns, rows);
            strata_product<width>(weight_gradients, 1, key_block, query, key_gradients, columns, rows);
            strata_product<width>(weight_gradients, key_block, 1, keys, query_gradients + (g * S::queries + q0) * width, rows, columns);
          }
        }
      }
      T* const key_out = (T*)arguments[S::results + 1] + b * S::key_out_strides[0] + kv_head * S::key_out_strides[1] + k0 * S::key_out_strides[2];
      T* const value_out = (T*)arguments[S::results + 2] + b * S::value_out_strides[0] + kv_head * S::value_out_strides[1] + k0 * S::value_out_strides[2];
      for (int64_t r = 0; r < columns; ++r) {
        for (int64_t i = 0; i < S::width; ++i) strata_store(key_out + r * S::key_out_strides[2] + i, key_gradients[r * width + i]);
        for (int64_t i = 0; i < S::value_width; ++i) strata_store(value_out + r * S::value_out_strides[2] + i, value_gradients[r * value_width + i]);
      }
    }
    for (int64_t g = 0; g < group; ++g) {
      T* const query_out = (T*)arguments[S::results] + b * S::query_out_strides[0] + (h0 + g) * S::query_out_strides[1];
      for (int64_t q = 0; q < S::queries; ++q)
        for (int64_t i = 0; i < S::width; ++i) strata_store(query_out + q * S::query_out_strides[2] + i, query_gradients[(g * S::queries + q) * width + i]);
    }
  }
}

// Counts and indices of partial and full blocks, of rows and then of columns.
template <int64_t rows, int64_t columns>
inline void strata_list_blocks(const uint8_t* kinds, int64_t row_step, int64_t column_step, int64_t unit, void* const* out) {
  for (int kind = 1; kind <= 2; ++kind) {
    int32_t* const counts = (int32_t*)out[2 * (kind - 1)] + unit * rows;
    int32_t* const indices = (int32_t*)out[2 * (kind - 1) + 1] + unit * rows * columns;
    for (int64_t r = 0; r < rows; ++r) {
      int32_t count = 0;
      for (int64_t c = 0; c < columns; ++c)
        if (kinds[r * row_step + c * column_step] == kind) indices[r * columns + count++] = (int32_t)c;
      counts[r] = count;
      for (int64_t c = 0; c < columns; ++c)
        if (kinds[r * row_step + c * column_step] != kind) indices[r * columns + count++] = (int32_t)c;
    }
  }
}

template <class S>
void strata_flex_block_mask(void* const* arguments, int64_t begin, int64_t end) {
  constexpr int64_t query_blocks = (S::queries + S::query_block - 1) / S::query_block;
  constexpr int64_t key_blocks = (S::keys + S::key_block - 1) / S::key_block;
  static thread_local uint8_t kinds[query_blocks * key_blocks];  // 1: partial, 2: full
  const auto buffers = S::buffers_of(arguments);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int32_t b = (int32_t)(unit / S::mask_heads), h = (int32_t)(unit % S::mask_heads);
    for (int64_t i = 0; i < query_blocks; ++i) {
      for (int64_t j = 0; j < key_blocks; ++j) {
        const int64_t q1 = strata_min((i + 1) * S::query_block, S::queries), k0 = j * S::key_block;
        const int64_t columns = strata_min(S::key_block, S::keys - k0);
        int64_t seen = 0;
        for (int64_t q = i * S::query_block; q < q1; ++q) {
          int32_t row = 0;
#pragma omp simd reduction(+:row)
          for (int64_t c = 0; c < columns; ++c) row += S::mask_mod(buffers, b, h, (int32_t)q, (int32_t)(k0 + c)) ? 1 : 0;
          seen += row;
          // Partial as soon as it is known to have both.
          if (seen > 0 && seen < (q + 1 - i * S::query_block) * S::key_block) break;
        }
        kinds[i * key_blocks + j] = seen == 0 ? 0 : seen == S::query_block * S::key_block ? 2 : 1;
      }
    }
    strata_list_blocks<query_blocks, key_blocks>(kinds, key_blocks, 1, unit, arguments + S::results);
    strata_list_blocks<key_blocks, query_blocks>(kinds, 1, key_blocks, unit, arguments + S::results + 4);
  }
}
}  // namespace
)code";

}  // namespace strata
