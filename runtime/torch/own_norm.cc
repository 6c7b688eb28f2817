#include "runtime/torch/own_norm.h"

#include <map>
#include <mutex>
#include <random>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>

#include "runtime/matmul/square_norm.h"

namespace strata {
namespace {

/// Of numbers between -1 and 1, with ATen's generator left alone.
bool IsEqualFor(int64_t count, std::minstd_rand& random) {
  const at::Tensor drawn = at::empty({count}, at::kFloat);
  auto* const numbers = drawn.mutable_data_ptr<float>();
  for (int64_t i = 0; i < count; ++i)
    numbers[i] = static_cast<float>(random()) / 1073741824.0F - 1.0F;
  return SquareNorm(numbers, count) == *at::linalg_vector_norm(drawn, 2.0).const_data_ptr<float>();
}

/// One number proves little, so there are many.
bool AreEqual(int64_t count) {
  std::minstd_rand random(1);
  for (int i = 0; i < 64; ++i) {
    if (!IsEqualFor(8 * (1 + static_cast<int64_t>(random() % 64)), random)) return false;
  }
  return IsEqualFor(count, random);
}

}  // namespace

bool NormHasAtensBits(int64_t count) {
  if (count < 8 || count % 8 != 0) return false;
  static std::mutex mutex;
  static std::map<std::pair<int64_t, int>, bool> known;
  const std::scoped_lock lock(mutex);
  const auto [entry, is_new] = known.try_emplace({count, at::get_num_threads()}, false);
  if (is_new) entry->second = AreEqual(count);
  return entry->second;
}

}  // namespace strata
