#include "runtime/codegen/cuda_flex_preamble.h"

namespace strata {

const std::string_view kCudaFlexPreamble = R"code(#define STRATA_INLINE __device__ inline
typedef int int32_t;
typedef short int16_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
__device__ inline uint8_t strata_load(uint8_t x) { return x; }
template <class T> __device__ inline T strata_max(T a, T b) { return a > b || a != a ? a : b; }
__device__ inline float strata_floor(float x) { return floorf(x); }
// Where row r of head h of a tensor begins.
#define STRATA_ROW(T, argument, name, b, h, r) ((T*)arguments[argument] + (b) * S::name##_strides[0] + (h) * S::name##_strides[1] + (r) * S::name##_strides[2])
constexpr int strata_threads = 128;
constexpr float strata_ln2 = 0.693147180559945309f;
__device__ constexpr int64_t strata_min(int64_t a, int64_t b) { return a < b ? a : b; }
__device__ constexpr int64_t strata_quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }
__device__ constexpr int strata_lanes_of(int64_t width) {
  int lanes = 1;
  while (lanes < 32 && 16 * lanes < width) lanes *= 2;
  return lanes;
}

// How a block of threads shares rows. Thread `lane` of a row has its numbers lane, lane + lanes, …,
// so that neighbours read neighbours; rows are padded with zeros.
template <class S>
struct strata_layout {
  static constexpr int lanes = strata_lanes_of(S::width > S::value_width ? S::width : S::value_width);
  static constexpr int rows = strata_threads / lanes;
  static constexpr int part = (int)strata_quotient(S::width, lanes), value_part = (int)strata_quotient(S::value_width, lanes);
  static constexpr int padded = part * lanes, value_padded = value_part * lanes;
  // Rows of the other side that are in shared memory at once: at most 40 KB of them.
  static constexpr int numbers = padded + value_padded, most = numbers == 0 ? 1 : 10240 / numbers;  // none: of a block mask
  static constexpr int others = most > 32 ? 32 : most < 1 ? 1 : most;
  static constexpr int64_t query_blocks = strata_quotient(S::queries, S::query_block), key_blocks = strata_quotient(S::keys, S::key_block);
};

// The sum over the threads of a row. All threads of a warp call it.
template <int lanes>
__device__ inline float strata_row_sum(float x) {
  for (int step = lanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(0xffffffffu, x, step);
  return x;
}

// The product of a row, of which this thread has a part, with one in shared memory.
template <int lanes, int part>
__device__ inline float strata_dot(const float (&own)[part], const float* row, int lane) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < part; ++i) sum = strata_fma(own[i], row[i * lanes + lane], sum);
  return strata_row_sum<lanes>(sum);
}

// own += factor row
template <int lanes, int part>
__device__ inline void strata_add(float (&own)[part], float factor, const float* row, int lane) {
#pragma unroll
  for (int i = 0; i < part; ++i) own[i] = strata_fma(factor, row[i * lanes + lane], own[i]);
}

template <int lanes, int part>
__device__ inline void strata_clear(float (&own)[part]) {
#pragma unroll
  for (int i = 0; i < part; ++i) own[i] = 0;
}

template <int lanes, int part, class T>
__device__ inline void strata_take(float (&own)[part], const T* row, int width, int lane) {
#pragma unroll
  for (int i = 0; i < part; ++i) own[i] = i * lanes + lane < width ? strata_load(row[i * lanes + lane]) : 0;
}

template <int lanes, int part, class T>
__device__ inline void strata_give(const float (&own)[part], float factor, T* row, int width, int lane) {
#pragma unroll
  for (int i = 0; i < part; ++i)
    if (i * lanes + lane < width) strata_store(row + i * lanes + lane, own[i] * factor);
}

// Rows into shared memory, by all threads.
template <int padded, class T>
__device__ inline void strata_fill(float* to, const T* from, int64_t stride, int width, int count) {
  for (int i = threadIdx.x; i < count * padded; i += strata_threads) {
    const int row = i / padded, column = i % padded;
    to[i] = column < width ? strata_load(from[row * stride + column]) : 0;
  }
}

template <class S>
__device__ inline int64_t strata_mask_row(int64_t b, int64_t h) {
  return (S::mask_batch == 1 ? 0 : b) * S::mask_heads + (S::mask_heads == 1 ? 0 : h);
}

// A row of queries: forward, and the gradient of it.
template <class S>
struct strata_query_tile {
  using L = strata_layout<S>;
  static constexpr int64_t tiles = strata_quotient(S::query_block, L::rows);
  static constexpr int64_t units = S::batch * S::heads * L::query_blocks * tiles;
  int32_t b, h, q;
  int lane;
  int64_t block;
  bool is_row;  // else it is computed with others, and not written
  __device__ explicit strata_query_tile(int64_t unit) {
    const int64_t head = unit / tiles / L::query_blocks, row = unit % tiles * L::rows + threadIdx.x / L::lanes;
    block = unit / tiles % L::query_blocks;
    b = (int32_t)(head / S::heads);
    h = (int32_t)(head % S::heads);
    const int64_t place = block * S::query_block + row;
    is_row = row < S::query_block && place < S::queries;
    q = (int32_t)strata_min(place, S::queries - 1);
    lane = threadIdx.x % L::lanes;
  }
};

// Calls `compute(tile)` for the tiles of a block of threads. All threads call it.
template <class S, class Compute>
__device__ inline void strata_each_query_tile(Compute compute) {
  for (int64_t unit = blockIdx.x; unit < strata_query_tile<S>::units; unit += gridDim.x) compute(strata_query_tile<S>(unit));
}

// Calls `visit(k, key, value, is_full)` with the keys that the block mask lists for the tile's
// queries, one after the other; their numbers are in shared memory. All threads call it.
template <class S, class Visit>
__device__ inline void strata_visit_keys(void* const* arguments, const int32_t* const* blocks, const strata_query_tile<S>& tile, Visit visit) {
  using L = strata_layout<S>;
  using T = typename S::Element;
  __shared__ float keys[L::others * L::padded], values[L::others * L::value_padded];
  const int64_t kv_head = tile.h / (S::heads / S::kv_heads), line = strata_mask_row<S>(tile.b, tile.h) * L::query_blocks + tile.block;
  const T* const key = STRATA_ROW(const T, 1, key, tile.b, kv_head, 0);
  const T* const value = STRATA_ROW(const T, 2, value, tile.b, kv_head, 0);
  for (int kind = 0; kind < 2; ++kind) {
    const int32_t count = blocks[2 * kind][line];
    for (int32_t j = 0; j < count; ++j) {
      const int64_t k0 = blocks[2 * kind + 1][line * L::key_blocks + j] * S::key_block, end = strata_min(k0 + S::key_block, S::keys);
      for (int64_t first = k0; first < end; first += L::others) {
        const int num = (int)strata_min(L::others, end - first);
        __syncthreads();
        strata_fill<L::padded>(keys, key + first * S::key_strides[2], S::key_strides[2], (int)S::width, num);
        strata_fill<L::value_padded>(values, value + first * S::value_strides[2], S::value_strides[2], (int)S::value_width, num);
        __syncthreads();
        for (int i = 0; i < num; ++i) visit((int32_t)(first + i), keys + i * L::padded, values + i * L::value_padded, kind == 1);
      }
    }
  }
}

template <class S>
__device__ void strata_flex_forward(void* const* arguments) {
  using L = strata_layout<S>;
  using T = typename S::Element;
  const auto buffers = S::buffers_of(arguments);
  strata_each_query_tile<S>([&](const strata_query_tile<S>& tile) {
    const int64_t b = tile.b, h = tile.h, q = tile.q;
    float query[L::part], sums[L::value_part], maximum = -(float)strata_inf(), total = 0;
    strata_take<L::lanes>(query, STRATA_ROW(const T, 0, query, b, h, q), (int)S::width, tile.lane);
    strata_clear<L::lanes>(sums);
    const int32_t* const lists[] = {(const int32_t*)arguments[3], (const int32_t*)arguments[4], (const int32_t*)arguments[5], (const int32_t*)arguments[6]};
    strata_visit_keys<S>(arguments, lists, tile, [&](int32_t k, const float* key, const float* value, bool is_full) {
      const float score = S::score_mod(buffers, strata_dot<L::lanes>(query, key, tile.lane) * S::scale, tile.b, tile.h, tile.q, k);
      if (score == -(float)strata_inf() || !(is_full || S::mask_mod(buffers, tile.b, tile.h, tile.q, k))) return;
      if (score > maximum) {
        const float factor = strata_exp(maximum - score);
        maximum = score;
        total *= factor;
#pragma unroll
        for (int i = 0; i < L::value_part; ++i) sums[i] *= factor;
      }
      const float weight = strata_exp(score - maximum);
      total += weight;
      strata_add<L::lanes>(sums, weight, value, tile.lane);
    });
    if (!tile.is_row) return;
    T* const out = STRATA_ROW(T, S::results, out, b, h, q);
    strata_give<L::lanes>(sums, total == 0 ? 0 : 1 / total, out, (int)S::value_width, tile.lane);
    if (tile.lane == 0)
      ((float*)arguments[S::results + 1])[(b * S::heads + h) * S::queries + q] = total == 0 ? -(float)strata_inf() : (maximum + strata_log(total)) / strata_ln2;
  });
}

// The gradient of the product of a query and a key, and the weight of the key.
template <class S>
struct strata_score_gradient {
  float weight = 0, gradient = 0;
  __device__ strata_score_gradient(const typename S::Buffers& buffers, float product, float weight_gradient, float base, float delta, int32_t b, int32_t h, int32_t q, int32_t k, bool is_full) {
    const float raw = product * S::scale, score = S::score_mod(buffers, raw, b, h, q, k);
    if (score == -(float)strata_inf() || !(is_full || S::mask_mod(buffers, b, h, q, k))) return;
    weight = strata_exp(score - base);
    gradient = S::joint(buffers, raw, weight * (weight_gradient - delta), b, h, q, k) * S::scale;
  }
};

template <class S>
__device__ void strata_flex_query_gradients(void* const* arguments) {
  using L = strata_layout<S>;
  using T = typename S::Element;
  const auto buffers = S::buffers_of(arguments);
  strata_each_query_tile<S>([&](const strata_query_tile<S>& tile) {
    const int64_t b = tile.b, h = tile.h, q = tile.q;
    float query[L::part], sums[L::part], out[L::value_part], gradient[L::value_part];
    strata_take<L::lanes>(query, STRATA_ROW(const T, 0, query, b, h, q), (int)S::width, tile.lane);
    strata_take<L::lanes>(out, STRATA_ROW(const T, 3, out, b, h, q), (int)S::value_width, tile.lane);
    strata_take<L::lanes>(gradient, STRATA_ROW(const T, 5, gradient, b, h, q), (int)S::value_width, tile.lane);
    strata_clear<L::lanes>(sums);
    float delta = 0;
#pragma unroll
    for (int i = 0; i < L::value_part; ++i) delta = strata_fma(out[i], gradient[i], delta);
    delta = strata_row_sum<L::lanes>(delta);
    const float base = ((const float*)arguments[4])[(b * S::heads + h) * S::queries + q] * strata_ln2;
    const int32_t* const lists[] = {(const int32_t*)arguments[6], (const int32_t*)arguments[7], (const int32_t*)arguments[8], (const int32_t*)arguments[9]};
    strata_visit_keys<S>(arguments, lists, tile, [&](int32_t k, const float* key, const float* value, bool is_full) {
      const float product = strata_dot<L::lanes>(query, key, tile.lane), weight_gradient = strata_dot<L::lanes>(gradient, value, tile.lane);
      const strata_score_gradient<S> score(buffers, product, weight_gradient, base, delta, tile.b, tile.h, tile.q, k, is_full);
      strata_add<L::lanes>(sums, score.gradient, key, tile.lane);
    });
    if (tile.is_row) strata_give<L::lanes>(sums, 1, STRATA_ROW(T, S::results, query_out, b, h, q), (int)S::width, tile.lane);
  });
}

template <class S>
__device__ void strata_flex_key_gradients(void* const* arguments) {
  using L = strata_layout<S>;
  using T = typename S::Element;
  __shared__ float queries[L::others * L::padded], gradients[L::others * L::value_padded], bases[L::others], deltas[L::others];
  constexpr int64_t group = S::heads / S::kv_heads, tiles = strata_quotient(S::key_block, L::rows);
  const auto buffers = S::buffers_of(arguments);
  const int lane = threadIdx.x % L::lanes, own = threadIdx.x / L::lanes;
  for (int64_t unit = blockIdx.x; unit < S::batch * S::kv_heads * L::key_blocks * tiles; unit += gridDim.x) {
    const int64_t head = unit / tiles / L::key_blocks, b = head / S::kv_heads, kv_head = head % S::kv_heads;
    const int64_t key_row = unit / tiles % L::key_blocks, row = unit % tiles * L::rows + own, place = key_row * S::key_block + row;
    const bool is_row = row < S::key_block && place < S::keys;
    const int64_t k = strata_min(place, S::keys - 1);
    float key[L::part], value[L::value_part], key_sums[L::part], value_sums[L::value_part];
    strata_take<L::lanes>(key, STRATA_ROW(const T, 1, key, b, kv_head, k), (int)S::width, lane);
    strata_take<L::lanes>(value, STRATA_ROW(const T, 2, value, b, kv_head, k), (int)S::value_width, lane);
    strata_clear<L::lanes>(key_sums);
    strata_clear<L::lanes>(value_sums);
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      const T* const query = STRATA_ROW(const T, 0, query, b, h, 0);
      const T* const out = STRATA_ROW(const T, 3, out, b, h, 0);
      const T* const gradient = STRATA_ROW(const T, 5, gradient, b, h, 0);
      const float* const logsumexp = (const float*)arguments[4] + (b * S::heads + h) * S::queries;
      const int64_t line = strata_mask_row<S>(b, h) * L::key_blocks + key_row;
      for (int kind = 0; kind < 2; ++kind) {
        const int32_t count = ((const int32_t*)arguments[10 + 2 * kind])[line];
        for (int32_t j = 0; j < count; ++j) {
          const int64_t q0 = ((const int32_t*)arguments[11 + 2 * kind])[line * L::query_blocks + j] * S::query_block, end = strata_min(q0 + S::query_block, S::queries);
          for (int64_t first = q0; first < end; first += L::others) {
            const int num = (int)strata_min(L::others, end - first);
            __syncthreads();
            strata_fill<L::padded>(queries, query + first * S::query_strides[2], S::query_strides[2], (int)S::width, num);
            strata_fill<L::value_padded>(gradients, gradient + first * S::gradient_strides[2], S::gradient_strides[2], (int)S::value_width, num);
            __syncthreads();
            for (int from = 0; from < num; from += L::rows) {
              const int i = from + own < num ? from + own : num - 1;
              float delta = 0, saved[L::value_part];
              strata_take<L::lanes>(saved, out + (first + i) * S::out_strides[2], (int)S::value_width, lane);
              delta = strata_dot<L::lanes>(saved, gradients + i * L::value_padded, lane);
              if (lane == 0 && from + own < num) {
                deltas[i] = delta;
                bases[i] = logsumexp[first + i] * strata_ln2;
              }
            }
            __syncthreads();
            for (int i = 0; i < num; ++i) {
              const float product = strata_dot<L::lanes>(key, queries + i * L::padded, lane), weight_gradient = strata_dot<L::lanes>(value, gradients + i * L::value_padded, lane);
              const strata_score_gradient<S> score(buffers, product, weight_gradient, bases[i], deltas[i], (int32_t)b, (int32_t)h, (int32_t)(first + i), (int32_t)k, kind == 1);
              strata_add<L::lanes>(value_sums, score.weight, gradients + i * L::value_padded, lane);
              strata_add<L::lanes>(key_sums, score.gradient, queries + i * L::padded, lane);
            }
          }
        }
      }
    }
    if (!is_row) continue;
    strata_give<L::lanes>(key_sums, 1, STRATA_ROW(T, S::results + 1, key_out, b, kv_head, k), (int)S::width, lane);
    strata_give<L::lanes>(value_sums, 1, STRATA_ROW(T, S::results + 2, value_out, b, kv_head, k), (int)S::value_width, lane);
  }
}

// Counts and indices of partial and full blocks, of rows or of columns. Indices of other blocks
// follow those that count.
template <class S, bool is_row>
__device__ void strata_flex_blocks(void* const* arguments) {
  using L = strata_layout<S>;
  constexpr int64_t lines = is_row ? L::query_blocks : L::key_blocks, others = is_row ? L::key_blocks : L::query_blocks;
  const auto buffers = S::buffers_of(arguments);
  void* const out[] = {arguments[S::results + (is_row ? 0 : 4)], arguments[S::results + (is_row ? 1 : 5)], arguments[S::results + (is_row ? 2 : 6)], arguments[S::results + (is_row ? 3 : 7)]};
  for (int64_t unit = blockIdx.x; unit < S::mask_batch * S::mask_heads * lines; unit += gridDim.x) {
    const int32_t b = (int32_t)(unit / lines / S::mask_heads), h = (int32_t)(unit / lines % S::mask_heads);
    int32_t* const indices[] = {(int32_t*)out[1] + unit * others, (int32_t*)out[3] + unit * others};
    // First what each list counts, then what remains; evaluated twice, which needs no memory.
    int32_t num[2] = {0, 0};
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t other = 0; other < others; ++other) {
        const int64_t q0 = (is_row ? unit % lines : other) * S::query_block, k0 = (is_row ? other : unit % lines) * S::key_block;
        const int64_t rows = strata_min(S::query_block, S::queries - q0), columns = strata_min(S::key_block, S::keys - k0);
        int32_t seen = 0;
        for (int64_t i = threadIdx.x; i < rows * columns; i += strata_threads)
          seen += S::mask_mod(buffers, b, h, (int32_t)(q0 + i / columns), (int32_t)(k0 + i % columns)) ? 1 : 0;
        seen = strata_join(seen, strata_join_sum());
        const bool is_full = seen == S::query_block * S::key_block;
        for (int kind = 0; kind < 2; ++kind) {
          const bool is_listed = seen > 0 && is_full == (kind == 1);
          if (is_listed != (pass == 0)) continue;
          if (threadIdx.x == 0) indices[kind][num[kind]] = (int32_t)other;
          ++num[kind];
        }
      }
      if (pass == 0 && threadIdx.x == 0) {
        ((int32_t*)out[0])[unit] = num[0];
        ((int32_t*)out[2])[unit] = num[1];
      }
    }
  }
}
)code";

}  // namespace strata
