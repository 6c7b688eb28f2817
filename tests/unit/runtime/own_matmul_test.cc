#include "runtime/torch/own_matmul.h"

#include <optional>
#include <random>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <doctest/doctest.h>

#include "runtime/matmul/square_norm.h"
#include "runtime/torch/own_norm.h"

namespace strata {
namespace {

using at::Tensor;

Tensor Operand(int64_t rows, int64_t columns, bool is_transposed) {
  return is_transposed ? at::randn({columns, rows}).t() : at::randn({rows, columns});
}

/// By our product; nothing: it is left to ATen.
std::optional<Tensor> OwnProduct(const Tensor& a, const Tensor& b) {
  Tensor result = at::empty({a.size(0), b.size(1)});
  std::optional<Matmul> matmul = MatmulWithAtensBits(a, b, result);
  if (!matmul) return std::nullopt;
  matmul->a = a.const_data_ptr<float>();
  matmul->b = b.const_data_ptr<float>();
  matmul->c = result.mutable_data_ptr<float>();
  RunMatmulInParallel(*matmul, BestMatmulIsa());
  return result;
}

TEST_CASE("where products are said to have ATen's bits, other operands have them, too") {
  at::manual_seed(3);
  std::mt19937 random(3);
  int num_compared = 0;
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    for (int run = 0; run < 40; ++run) {
      const auto draw = [&](int64_t most) { return static_cast<int64_t>(random() % most) + 1; };
      const int64_t rows = draw(130), columns = draw(130), inner = draw(run % 2 == 0 ? 130 : 700);
      const Tensor a = Operand(rows, inner, run % 3 == 0);
      const Tensor b = Operand(inner, columns, run % 4 < 2);
      const std::optional<Tensor> product = OwnProduct(a, b);
      if (!product) continue;
      CHECK(at::equal(*product, at::mm(a, b)));
      ++num_compared;
    }
  }
  at::set_num_threads(1);
  if (num_compared == 0) MESSAGE("skipped: no product has ATen's bits on this processor");
}

TEST_CASE("products of few numbers have ATen's bits for many operands, or are left to it") {
  at::manual_seed(4);
  for (const int64_t inner : {1, 2, 3, 4}) {
    for (const bool is_transposed : {false, true}) {
      for (int run = 0; run < 200; ++run) {
        const Tensor a = Operand(2, inner, is_transposed), b = Operand(inner, 8, !is_transposed);
        const std::optional<Tensor> product = OwnProduct(a, b);
        if (!product) break;
        REQUIRE(at::equal(*product, at::mm(a, b)));
      }
    }
  }
}

TEST_CASE("what is no plain matrix of floats is left to ATen") {
  const Tensor a = at::randn({4, 6}), b = at::randn({6, 5}), c = at::empty({4, 5});
  CHECK_FALSE(MatmulWithAtensBits(a.to(at::kDouble), b.to(at::kDouble), c.to(at::kDouble)));
  CHECK_FALSE(MatmulWithAtensBits(a.to(at::kBFloat16), b.to(at::kBFloat16), c));
  CHECK_FALSE(MatmulWithAtensBits(a, b, at::empty({5, 4}).t()));
  CHECK_FALSE(MatmulWithAtensBits(at::randn({4, 12}).as_strided({4, 6}, {12, 2}), b, c));
  CHECK_FALSE(MatmulWithAtensBits(at::empty({0, 6}), b, at::empty({0, 5})));
}

TEST_CASE("norms are computed where they have ATen's bits") {
  at::manual_seed(4);
  for (const int64_t count : {8, 24, 4096, 98304}) {
    if (!NormHasAtensBits(count)) {
      MESSAGE("skipped: this processor's ATen adds ", count, " squares in another order");
      continue;
    }
    for (int run = 0; run < 50; ++run) {
      const Tensor x = at::randn({count / 8, 8});
      CHECK_EQ(SquareNorm(x.const_data_ptr<float>(), count),
               at::linalg_vector_norm(x, 2.0).item<float>());
    }
  }
  CHECK_FALSE(NormHasAtensBits(0));
  CHECK_FALSE(NormHasAtensBits(12));
}

}  // namespace
}  // namespace strata
