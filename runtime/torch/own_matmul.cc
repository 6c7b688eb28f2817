#include "runtime/torch/own_matmul.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "runtime/torch/parallel.h"

namespace strata {
namespace {

using at::Tensor;

/// Multiply-adds that are worth waking another thread for.
constexpr int64_t kGrain = 1 << 18;

bool IsMatrix(const Tensor& tensor) {
  return tensor.defined() && tensor.scalar_type() == at::kFloat && tensor.dim() == 2 &&
         tensor.numel() > 0 && tensor.device().is_cpu();
}

/// Numbers between -1 and 1, with ATen's generator left alone.
Tensor Drawn(const Matmul& m, bool is_a, std::minstd_rand& random) {
  const std::array<int64_t, 2> sizes{is_a ? m.rows : m.inner, is_a ? m.inner : m.columns};
  const std::array<int64_t, 2> strides{is_a ? m.a_row : m.b_row, is_a ? m.a_column : m.b_column};
  const int64_t count = (sizes[0] - 1) * strides[0] + (sizes[1] - 1) * strides[1] + 1;
  Tensor memory = at::empty({count}, at::kFloat);
  auto* const numbers = memory.mutable_data_ptr<float>();
  for (int64_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<float>(random()) / 1073741824.0F - 1.0F;
    // Zeros have a sign, too: a product of one term may keep it, a sum that begins at zero does
    // not.
    if (i % 5 == 0) numbers[i] = 0.0F;
  }
  return memory.as_strided(sizes, strides);
}

bool IsEqual(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// Whether chains of `m.block` give ATen's bits for drawn operands.
bool IsEqualFor(Matmul m, MatmulIsa isa, std::minstd_rand& random) {
  const Tensor a = Drawn(m, true, random), b = Drawn(m, false, random);
  const Tensor expected = at::mm(a, b);
  if (!expected.is_contiguous()) return false;
  // Some rows at a time: operands and a result are there in a training anyway, two results are not.
  const int64_t rows = (m.rows + 7) / 8;
  const Tensor actual = at::empty({rows, m.columns}, at::kFloat);
  m.b = b.const_data_ptr<float>();
  m.c = actual.mutable_data_ptr<float>();
  for (int64_t first = 0; first < expected.size(0); first += rows) {
    m.rows = std::min(rows, expected.size(0) - first);
    m.a = a.const_data_ptr<float>() + first * m.a_row;
    RunMatmulInParallel(m, isa);
    if (!IsEqual(actual.narrow(0, 0, m.rows), expected.narrow(0, first, m.rows))) return false;
  }
  return true;
}

/// The length of chains with which the bits are ATen's; 0: there is none.
int64_t FindBlock(Matmul m, MatmulIsa isa) {
  // Few numbers prove little: another order of two products differs in one sum of several.
  constexpr int64_t kNumbers = 4096;
  const int64_t draws = std::clamp<int64_t>(kNumbers / (m.rows * m.columns), 1, 512);
  // One chain, or what libraries cut the inner dimension into: a fixed length, or halves.
  for (const int64_t block : {m.inner, int64_t{192}, m.inner / 2, int64_t{256}, int64_t{384}}) {
    if (block < 1 || block > std::min(kMaxMatmulBlock, m.inner)) continue;
    m.block = block;
    std::minstd_rand random(1);
    int64_t draw = 0;
    while (draw < draws && IsEqualFor(m, isa, random))
      ++draw;
    if (draw == draws) return block;
  }
  return 0;
}

}  // namespace

std::optional<Matmul> MatmulWithAtensBits(const Tensor& a, const Tensor& b, const Tensor& result) {
  const MatmulIsa isa = BestMatmulIsa();
  if (isa == MatmulIsa::kNone || !IsMatrix(a) || !IsMatrix(b) || !IsMatrix(result) ||
      !result.is_contiguous() || a.size(1) != b.size(0)) {
    return std::nullopt;
  }
  Matmul matmul{.rows = a.size(0),
                .columns = b.size(1),
                .inner = a.size(1),
                .a_row = a.stride(0),
                .a_column = a.stride(1),
                .b_row = b.stride(0),
                .b_column = b.stride(1),
                .c_row = b.size(1)};
  if ((matmul.a_row != 1 && matmul.a_column != 1) || (matmul.b_row != 1 && matmul.b_column != 1)) {
    return std::nullopt;
  }
  static std::mutex mutex;
  static std::map<std::array<int64_t, 8>, int64_t> known;
  const std::array<int64_t, 8> key{matmul.rows,     matmul.columns,       matmul.inner,
                                   matmul.a_row,    matmul.a_column,      matmul.b_row,
                                   matmul.b_column, at::get_num_threads()};
  const std::scoped_lock lock(mutex);
  const auto found = known.find(key);
  matmul.block = found != known.end() ? found->second : FindBlock(matmul, isa);
  known[key] = matmul.block;
  return matmul.block > 0 ? std::optional(matmul) : std::nullopt;
}

void RunMatmulInParallel(const Matmul& matmul, MatmulIsa isa) {
  const int64_t parts = std::min<int64_t>(at::get_num_threads(),
                                          matmul.rows * matmul.columns * matmul.inner / kGrain);
  if (parts <= 1) {
    RunMatmul(matmul, isa);
    return;
  }
  ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part)
      RunMatmul(PartOf(matmul, part, parts), isa);
  });
}

}  // namespace strata
