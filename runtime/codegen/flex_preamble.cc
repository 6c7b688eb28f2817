#include "runtime/codegen/flex_source.h"

namespace strata {

// Compiled on first use, with `-O2`: what is called from several places has one body, loops over
// scratch memory have constant sizes, and loops that must be vectors say so.
//
// Products are computed in tiles of registers; a vector of sums takes one fused multiply-add per
// number of the left operand. Rows of scratch memory are padded to whole vectors with zeros, and
// blocks of rows to whole tiles, whose further rows are not read.
const std::string_view kFlexPreamble = R"code(namespace {
#if defined(__AVX512F__)
typedef float strata_wide __attribute__((vector_size(64), aligned(4)));
constexpr int strata_rows = 8;
#define STRATA_FIRST_HALVES 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define STRATA_SECOND_HALVES 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#else
typedef float strata_wide __attribute__((vector_size(32), aligned(4)));
constexpr int strata_rows = 6;
#define STRATA_FIRST_HALVES 0, 8, 1, 9, 2, 10, 3, 11
#define STRATA_SECOND_HALVES 4, 12, 5, 13, 6, 14, 7, 15
#endif
constexpr int64_t strata_lanes = sizeof(strata_wide) / sizeof(float);
constexpr int64_t strata_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }
constexpr int64_t strata_padded(int64_t n) { return strata_up(n, strata_lanes); }
STRATA_INLINE int64_t strata_min(int64_t a, int64_t b) { return a < b ? a : b; }
#define STRATA_ONE_BODY __attribute__((noinline, noclone))
#if defined(__clang__)
#define STRATA_FUSED
#define STRATA_FUSE _Pragma("clang fp contract(fast)")
#else
#define STRATA_FUSED __attribute__((optimize("fp-contract=fast")))
#define STRATA_FUSE
#endif

// strata_rows rows and V vectors of c = a b, or of c += a b; a[m, k] is a[m * am + k * ak], rows of b
// and c are n apart.
template <int V, bool adds>
STRATA_ONE_BODY STRATA_FUSED void strata_tile(const float* a, int64_t am, int64_t ak, const float* b, float* c, int64_t n, int64_t size) {
  STRATA_FUSE
  strata_wide sums[strata_rows][V];
  STRATA_UNROLLED
  for (int r = 0; r < strata_rows; ++r)
    STRATA_UNROLLED
    for (int v = 0; v < V; ++v) sums[r][v] = adds ? *(const strata_wide*)(c + r * n + v * strata_lanes) : strata_wide{};
  for (int64_t k = 0; k < size; ++k, a += ak, b += n) {
    strata_wide row[V];
    STRATA_UNROLLED
    for (int v = 0; v < V; ++v) row[v] = *(const strata_wide*)(b + v * strata_lanes);
    STRATA_UNROLLED
    for (int r = 0; r < strata_rows; ++r)
      STRATA_UNROLLED
      for (int v = 0; v < V; ++v) sums[r][v] += a[r * am] * row[v];
  }
  STRATA_UNROLLED
  for (int r = 0; r < strata_rows; ++r)
    STRATA_UNROLLED
    for (int v = 0; v < V; ++v) *(strata_wide*)(c + r * n + v * strata_lanes) = sums[r][v];
}

// The first `columns` columns of a row of tiles; columns is a multiple of the lanes.
template <bool adds>
inline void strata_tiles(const float* a, int64_t am, int64_t ak, const float* b, float* c, int64_t n, int64_t columns, int64_t size) {
  int64_t i = 0;
  for (; i + 2 * strata_lanes <= columns; i += 2 * strata_lanes) strata_tile<2, adds>(a, am, ak, b + i, c + i, n, size);
  if (i < columns) strata_tile<1, adds>(a, am, ak, b + i, c + i, n, size);
}

// What of a matrix is not zero. Parts are whole tiles, and of the rows of `lower` whole vectors.
enum class strata_part { all, lower, upper };

// How many columns of a row of a matrix with n columns are not zero.
template <int64_t n>
STRATA_INLINE int64_t strata_columns(strata_part part, int64_t row) {
  const int64_t lower = strata_padded((row / strata_rows + 1) * strata_rows);
  return part == strata_part::lower && lower < n ? lower : n;
}

// That part of c[rows, n] = a[rows, size] b[size, n]; n is a multiple of the lanes, and there is room
// for rows up to a whole tile.
template <int64_t n>
inline void strata_multiply(strata_part part, const float* a, int64_t am, int64_t ak, const float* b, float* c, int64_t rows, int64_t size) {
  for (int64_t r = 0; r < rows; r += strata_rows)
    strata_tiles<false>(a + r * am, am, ak, b, c + r * n, n, strata_columns<n>(part, r), size);
}

// c[rows, n] += a[rows, size] b[size, n], where only that part of a is not zero.
template <int64_t n>
inline void strata_add_product(strata_part part, const float* a, int64_t am, int64_t ak, const float* b, float* c, int64_t rows, int64_t size) {
  for (int64_t r = 0; r < rows; r += strata_rows) {
    const int64_t first = part == strata_part::upper ? r : 0;
    const int64_t end = part == strata_part::lower ? strata_min(r + strata_rows, size) : size;
    strata_tiles<true>(a + r * am + first * ak, am, ak, b + first * n, c + r * n, n, n, end - first);
  }
}

// to[rows, n] of from[rows, width], whose rows are `stride` apart.
template <int64_t n, int64_t width, class T>
STRATA_ONE_BODY void strata_pack(const T* from, int64_t stride, float* to, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) to[r * n + i] = strata_load(from[r * stride + i]);
    for (int64_t i = width; i < n; ++i) to[r * n + i] = 0;
  }
}

// to[lanes, lanes] of the transposed from[lanes, lanes]. Each round interleaves the first half of the
// rows with the second, which moves the highest bit of a row's index to the lowest of a column's.
template <class T>
STRATA_INLINE void strata_transpose(const T* from, int64_t stride, float* to, int64_t n) {
  strata_wide rows[strata_lanes], mixed[strata_lanes];
  STRATA_UNROLLED
  for (int r = 0; r < strata_lanes; ++r)
    STRATA_UNROLLED
    for (int i = 0; i < strata_lanes; ++i) rows[r][i] = strata_load(from[r * stride + i]);
  STRATA_UNROLLED
  for (int round = 1; round < strata_lanes; round *= 2) {
    STRATA_UNROLLED
    for (int r = 0; r < strata_lanes / 2; ++r) {
      mixed[2 * r] = __builtin_shufflevector(rows[r], rows[r + strata_lanes / 2], STRATA_FIRST_HALVES);
      mixed[2 * r + 1] = __builtin_shufflevector(rows[r], rows[r + strata_lanes / 2], STRATA_SECOND_HALVES);
    }
    STRATA_UNROLLED
    for (int r = 0; r < strata_lanes; ++r) rows[r] = mixed[r];
  }
  STRATA_UNROLLED
  for (int r = 0; r < strata_lanes; ++r) *(strata_wide*)(to + r * n) = rows[r];
}

// The same transposed: to[width, n] with a column per row.
template <int64_t n, int64_t width, class T>
STRATA_ONE_BODY void strata_pack_columns(const T* from, int64_t stride, float* to, int64_t rows) {
  constexpr int64_t whole = width / strata_lanes * strata_lanes;
  const int64_t whole_rows = rows / strata_lanes * strata_lanes;
  for (int64_t r = 0; r < whole_rows; r += strata_lanes)
    for (int64_t i = 0; i < whole; i += strata_lanes) strata_transpose(from + r * stride + i, stride, to + i * n + r, n);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = r < whole_rows ? whole : 0; i < width; ++i) to[i * n + r] = strata_load(from[r * stride + i]);
  for (int64_t i = 0; i < width; ++i)
    for (int64_t r = rows; r < n; ++r) to[i * n + r] = 0;
}

// to[rows, width] = factor from[rows, n]
template <int64_t n, int64_t width, class T>
STRATA_ONE_BODY void strata_unpack(const float* from, float factor, T* to, int64_t stride, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r)
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) strata_store(to + r * stride + i, from[r * n + i] * factor);
}

inline void strata_clear(float* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = 0;
}

STRATA_INLINE float strata_floor(float x) { return __builtin_floorf(x); }
constexpr float strata_ln2 = 0.693147180559945309f;

// The rows of the block that begins at `first`: a constant where blocks divide them.
template <int64_t total, int64_t block>
STRATA_INLINE int64_t strata_extent(int64_t first) {
  return total % block == 0 ? block : strata_min(block, total - first);
}

// The key of column i of a block; beyond the last key, the last, as bodies may read buffers there.
template <class S>
STRATA_INLINE int64_t strata_key(int64_t k0, int64_t i) {
  const int64_t k = k0 + i, last = S::keys - 1;
  return S::keys % S::key_block == 0 && S::key_block % strata_lanes == 0 ? k : k < last ? k : last;
}

// Which keys of a block a query sees. A loop of its own, and not forced to be of vectors: in one with
// other work GCC 12 loads what a mask reads element by element.
template <class S, bool is_full>
STRATA_INLINE void strata_find_seen(const typename S::Buffers& buffers, int32_t* seen, int64_t count, int32_t b, int32_t h, int32_t q, int64_t k0) {
  const int64_t columns = strata_extent<S::keys, S::key_block>(k0);
  for (int64_t i = 0; i < count; ++i)
    seen[i] = (i < columns) & (is_full || S::mask_mod(buffers, b, h, q, strata_key<S>(k0, i))) ? 1 : 0;
}

// What of a block is not zero: its partial blocks are on the diagonal where S::is_causal.
template <class S, bool is_full>
constexpr strata_part strata_block_part = S::is_causal && !is_full ? strata_part::lower : strata_part::all;

// How many columns of the row of query q are not zero in the block of key k0.
template <class S, bool is_full>
STRATA_INLINE int64_t strata_block_columns(int64_t q, int64_t k0) {
  return strata_columns<strata_padded(S::key_block)>(strata_block_part<S, is_full>, q - k0);
}

// Of a row of products the scores; the largest, or `maximum`.
template <class S, bool is_full>
STRATA_ONE_BODY float strata_scores(const typename S::Buffers& buffers, float* row, float maximum, int32_t b, int32_t h, int32_t q, int64_t k0) {
  int32_t seen[strata_padded(S::key_block)];
  const int64_t count = strata_block_columns<S, is_full>(q, k0);
  strata_find_seen<S, is_full>(buffers, seen, count, b, h, q, k0);
#pragma omp simd reduction(max:maximum)
  for (int64_t i = 0; i < count; ++i) {
    const float modified = S::score_mod(buffers, row[i] * S::scale, b, h, q, strata_key<S>(k0, i));
    row[i] = seen[i] != 0 ? modified : -__builtin_inff();
    maximum = row[i] > maximum ? row[i] : maximum;
  }
  return maximum;
}

// A row of scores becomes weights; their sum.
template <class S, bool is_full>
STRATA_ONE_BODY float strata_weights(float* row, float base, int64_t q, int64_t k0) {
  const int64_t count = strata_block_columns<S, is_full>(q, k0);
  float total = 0;
#pragma omp simd reduction(+:total)
  for (int64_t i = 0; i < count; ++i) {
    row[i] = row[i] == -__builtin_inff() ? 0 : strata_exp(row[i] - base);
    total += row[i];
  }
  return total;
}

// Of a row of products of query and key, and of the gradient and values: weights, and the gradients
// of the products.
template <class S, bool is_full>
STRATA_ONE_BODY void strata_score_gradients(const typename S::Buffers& buffers, float* weights, float* gradients, float base, float delta, int32_t b, int32_t h, int32_t q, int64_t k0) {
  int32_t seen[strata_padded(S::key_block)];
  const int64_t count = strata_block_columns<S, is_full>(q, k0);
  strata_find_seen<S, is_full>(buffers, seen, count, b, h, q, k0);
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const int64_t k = strata_key<S>(k0, i);
    const float raw = weights[i] * S::scale;
    const float score = S::score_mod(buffers, raw, b, h, q, k);
    const bool is_seen = seen[i] != 0 && score != -__builtin_inff();
    const float weight = is_seen ? strata_exp(score - base) : 0;
    const float gradient = S::joint(buffers, raw, weight * (gradients[i] - delta), b, h, q, k);
    weights[i] = weight;
    gradients[i] = is_seen ? gradient * S::scale : 0;
  }
}

// The partial and full blocks of a row or a column of blocks: what a block mask lists, or causal ones.
template <class S, bool is_row>
struct strata_blocks {
  static constexpr int64_t others = is_row ? (S::keys + S::key_block - 1) / S::key_block : (S::queries + S::query_block - 1) / S::query_block;
  const int32_t* const* lists;
  int64_t mask_line, line;
  int64_t count(int kind) const {
    if constexpr (S::is_causal) return kind == 0 ? 1 : is_row ? line : others - 1 - line;
    else return lists[2 * kind][mask_line];
  }
  int64_t at(int kind, int64_t j) const {
    if constexpr (S::is_causal) return kind == 0 ? line : is_row ? j : line + 1 + j;
    else return lists[2 * kind + 1][mask_line * others + j];
  }
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
  constexpr int64_t key_blocks = (S::keys + S::key_block - 1) / S::key_block, query_rows = strata_up(S::query_block, strata_rows);
  // Units of a head follow each other: its keys and values are packed once, up to 4 MB of them.
  constexpr bool keeps = key_blocks * (S::width * key_block + S::key_block * value_width) <= 1 << 20;
  constexpr int64_t kept_blocks = keeps ? key_blocks : 1;
  static thread_local float all_keys[kept_blocks * S::width * key_block], all_values[kept_blocks * S::key_block * value_width];
  static thread_local bool is_packed[key_blocks];
  int64_t packed_head = -1;
  static thread_local float query[query_rows * width], scores[query_rows * key_block], sums[query_rows * value_width], maxima[S::query_block], totals[S::query_block];
  const auto buffers = S::buffers_of(arguments);
  const int32_t* const* const blocks = (const int32_t* const*)(arguments + 3);  // not where S::is_causal
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t block = unit % query_blocks, h = unit / query_blocks % S::heads, b = unit / query_blocks / S::heads;
    const int64_t q0 = block * S::query_block, rows = strata_extent<S::queries, S::query_block>(q0);
    const int64_t kv_head = h / (S::heads / S::kv_heads);
    const T* const key = (const T*)arguments[1] + b * S::key_strides[0] + kv_head * S::key_strides[1];
    const T* const value = (const T*)arguments[2] + b * S::value_strides[0] + kv_head * S::value_strides[1];
    if (b * S::kv_heads + kv_head != packed_head) {
      packed_head = b * S::kv_heads + kv_head;
      for (bool& is_block_packed : is_packed) is_block_packed = false;
    }
    strata_pack<width, S::width>((const T*)arguments[0] + b * S::query_strides[0] + h * S::query_strides[1] + q0 * S::query_strides[2], S::query_strides[2], query, rows);
    strata_clear(sums, rows * value_width);
    for (int64_t r = 0; r < rows; ++r) {
      maxima[r] = -__builtin_inff();
      totals[r] = 0;
    }
    const strata_blocks<S, true> listed = {blocks, strata_mask_row<S>(b, h) * query_blocks + block, block};
    for (int kind = 0; kind < 2; ++kind) {
      const int64_t count = listed.count(kind);
      for (int64_t j = 0; j < count; ++j) {
        const int64_t key_row = listed.at(kind, j), k0 = key_row * S::key_block;
        const int64_t columns = strata_extent<S::keys, S::key_block>(k0);
        const int64_t kept = keeps ? key_row : 0;
        float *const keys = all_keys + kept * S::width * key_block, *const values = all_values + kept * S::key_block * value_width;
        if (!keeps || !is_packed[key_row]) {
          strata_pack_columns<key_block, S::width>(key + k0 * S::key_strides[2], S::key_strides[2], keys, columns);
          strata_pack<value_width, S::value_width>(value + k0 * S::value_strides[2], S::value_strides[2], values, columns);
          is_packed[key_row] = true;
        }
        const strata_part part = kind == 0 ? strata_block_part<S, false> : strata_part::all;
        strata_multiply<key_block>(part, query, width, 1, keys, scores, rows, S::width);
        for (int64_t r = 0; r < rows; ++r) {
          float* const row = scores + r * key_block;
          const auto modify = kind == 0 ? strata_scores<S, false> : strata_scores<S, true>;
          const float maximum = modify(buffers, row, maxima[r], (int32_t)b, (int32_t)h, (int32_t)(q0 + r), k0);
          const float base = maximum == -__builtin_inff() ? 0 : maximum;
          const float factor = strata_exp(maxima[r] - base);
          const auto weigh = kind == 0 ? strata_weights<S, false> : strata_weights<S, true>;
          const float total = weigh(row, base, q0 + r, k0);
          totals[r] = totals[r] * factor + total;
          maxima[r] = maximum;
#pragma omp simd
          for (int64_t i = 0; i < value_width; ++i) sums[r * value_width + i] *= factor;
        }
        strata_add_product<value_width>(part, scores, key_block, 1, values, sums, rows, columns);
      }
    }
    T* const out = (T*)arguments[S::results] + b * S::out_strides[0] + h * S::out_strides[1] + q0 * S::out_strides[2];
    float* const logsumexp = (float*)arguments[S::results + 1] + b * S::logsumexp_strides[0] + h * S::logsumexp_strides[1] + q0 * S::logsumexp_strides[2];
    for (int64_t r = 0; r < rows; ++r) {
      const float inverse = totals[r] == 0 ? 0 : 1 / totals[r];
      strata_unpack<value_width, S::value_width>(sums + r * value_width, inverse, out + r * S::out_strides[2], 0, 1);
      logsumexp[r * S::logsumexp_strides[2]] = totals[r] == 0 ? -__builtin_inff() : (maxima[r] + strata_log(totals[r])) / (S::is_causal ? 1 : strata_ln2);
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
  constexpr int64_t query_rows = strata_up(S::query_block, strata_rows), key_rows = strata_up(S::key_block, strata_rows);
  constexpr int64_t query_size = query_rows * width, gradient_size = query_rows * value_width;
  // Queries and gradients of a group are packed once: every block of keys reads them.
  static thread_local float queries[group * query_blocks * query_size], gradients[group * query_blocks * gradient_size];
  static thread_local float keys[S::key_block * width], key_columns[S::width * key_block], value_columns[S::value_width * key_block], weights[query_rows * key_block + strata_rows], weight_gradients[query_rows * key_block + strata_rows], key_gradients[key_rows * width], value_gradients[key_rows * value_width], deltas[group * S::queries], query_gradients[group * query_blocks * query_size];
  const auto buffers = S::buffers_of(arguments);
  const int32_t* const* const blocks = (const int32_t* const*)(arguments + 6 + 4);
  const float* const logsumexps = (const float*)arguments[4];
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t kv_head = unit % S::kv_heads, b = unit / S::kv_heads, h0 = kv_head * group;
    const T* const key = (const T*)arguments[1] + b * S::key_strides[0] + kv_head * S::key_strides[1];
    const T* const value = (const T*)arguments[2] + b * S::value_strides[0] + kv_head * S::value_strides[1];
    strata_clear(query_gradients, group * query_blocks * query_size);
    for (int64_t g = 0; g < group; ++g) {
      const T* const query = (const T*)arguments[0] + b * S::query_strides[0] + (h0 + g) * S::query_strides[1];
      const T* const out = (const T*)arguments[3] + b * S::out_strides[0] + (h0 + g) * S::out_strides[1];
      const T* const grad = (const T*)arguments[5] + b * S::gradient_strides[0] + (h0 + g) * S::gradient_strides[1];
      for (int64_t q = 0; q < S::queries; ++q) {
        float sum = 0;
#pragma omp simd reduction(+:sum)
        for (int64_t i = 0; i < S::value_width; ++i) sum += strata_load(out[q * S::out_strides[2] + i]) * strata_load(grad[q * S::gradient_strides[2] + i]);
        deltas[g * S::queries + q] = sum;
      }
      for (int64_t block = 0; block < query_blocks; ++block) {
        const int64_t q0 = block * S::query_block, rows = strata_extent<S::queries, S::query_block>(q0);
        strata_pack<width, S::width>(query + q0 * S::query_strides[2], S::query_strides[2], queries + (g * query_blocks + block) * query_size, rows);
        strata_pack<value_width, S::value_width>(grad + q0 * S::gradient_strides[2], S::gradient_strides[2], gradients + (g * query_blocks + block) * gradient_size, rows);
      }
    }
    for (int64_t key_row = 0; key_row < key_blocks; ++key_row) {
      const int64_t k0 = key_row * S::key_block, columns = strata_extent<S::keys, S::key_block>(k0);
      strata_pack<width, S::width>(key + k0 * S::key_strides[2], S::key_strides[2], keys, columns);
      strata_pack_columns<key_block, S::width>(key + k0 * S::key_strides[2], S::key_strides[2], key_columns, columns);
      strata_pack_columns<key_block, S::value_width>(value + k0 * S::value_strides[2], S::value_strides[2], value_columns, columns);
      strata_clear(key_gradients, columns * width);
      strata_clear(value_gradients, columns * value_width);
      for (int64_t g = 0; g < group; ++g) {
        const int64_t h = h0 + g;
        const strata_blocks<S, false> listed = {blocks, strata_mask_row<S>(b, h) * key_blocks + key_row, key_row};
        const float* const logsumexp = logsumexps + b * S::logsumexp_strides[0] + h * S::logsumexp_strides[1];
        for (int kind = 0; kind < 2; ++kind) {
          const int64_t count = listed.count(kind);
          for (int64_t j = 0; j < count; ++j) {
            const int64_t block = listed.at(kind, j), q0 = block * S::query_block;
            const int64_t rows = strata_extent<S::queries, S::query_block>(q0);
            const float* const query = queries + (g * query_blocks + block) * query_size;
            const float* const gradient = gradients + (g * query_blocks + block) * gradient_size;
            const strata_part part = kind == 0 ? strata_block_part<S, false> : strata_part::all;
            const strata_part transposed = part == strata_part::lower ? strata_part::upper : part;
            strata_multiply<key_block>(part, query, width, 1, key_columns, weights, rows, S::width);
            strata_multiply<key_block>(part, gradient, value_width, 1, value_columns, weight_gradients, rows, S::value_width);
            for (int64_t r = 0; r < rows; ++r) {
              const auto modify = kind == 0 ? strata_score_gradients<S, false> : strata_score_gradients<S, true>;
              modify(buffers, weights + r * key_block, weight_gradients + r * key_block, logsumexp[(q0 + r) * S::logsumexp_strides[2]] * (S::is_causal ? 1 : strata_ln2), deltas[g * S::queries + q0 + r], (int32_t)b, (int32_t)h, (int32_t)(q0 + r), k0);
            }
            strata_add_product<value_width>(transposed, weights, 1, key_block, gradient, value_gradients, columns, rows);
            strata_add_product<width>(transposed, weight_gradients, 1, key_block, query, key_gradients, columns, rows);
            strata_add_product<width>(part, weight_gradients, key_block, 1, keys, query_gradients + (g * query_blocks + block) * query_size, rows, columns);
          }
        }
      }
      T* const key_out = (T*)arguments[S::results + 1] + b * S::key_out_strides[0] + kv_head * S::key_out_strides[1] + k0 * S::key_out_strides[2];
      T* const value_out = (T*)arguments[S::results + 2] + b * S::value_out_strides[0] + kv_head * S::value_out_strides[1] + k0 * S::value_out_strides[2];
      strata_unpack<width, S::width>(key_gradients, 1, key_out, S::key_out_strides[2], columns);
      strata_unpack<value_width, S::value_width>(value_gradients, 1, value_out, S::value_out_strides[2], columns);
    }
    for (int64_t g = 0; g < group; ++g) {
      T* const query_out = (T*)arguments[S::results] + b * S::query_out_strides[0] + (h0 + g) * S::query_out_strides[1];
      for (int64_t block = 0; block < query_blocks; ++block) {
        const int64_t q0 = block * S::query_block;
        strata_unpack<width, S::width>(query_gradients + (g * query_blocks + block) * query_size, 1, query_out + q0 * S::query_out_strides[2], S::query_out_strides[2], strata_extent<S::queries, S::query_block>(q0));
      }
    }
  }
}

// Counts and indices of partial and full blocks, of rows and then of columns.
STRATA_ONE_BODY void strata_list_blocks(const uint8_t* kinds, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step, int64_t unit, void* const* out) {
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
          for (int64_t c = 0; c < columns; ++c) row += S::mask_mod(buffers, b, h, (int32_t)q, k0 + c) ? 1 : 0;
          seen += row;
          // Partial as soon as it is known to have both.
          if (seen > 0 && seen < (q + 1 - i * S::query_block) * S::key_block) break;
        }
        kinds[i * key_blocks + j] = seen == 0 ? 0 : seen == S::query_block * S::key_block ? 2 : 1;
      }
    }
    strata_list_blocks(kinds, query_blocks, key_blocks, key_blocks, 1, unit, arguments + S::results);
    strata_list_blocks(kinds, key_blocks, query_blocks, 1, key_blocks, unit, arguments + S::results + 4);
  }
}
}  // namespace
)code";

}  // namespace strata
