#include "runtime/torch/own_loops.h"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/loops/loops.h"
#include "runtime/torch/atens_roots.h"
#include "runtime/torch/executor.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using testing::OrDie;
using testing::ParseBody;

/// What a graph gives as ATen computes it, and with loops of ours where they have its bits.
void CheckSameBits(const std::string& body, const Tensors& inputs) {
  INFO(body);
  const auto run = [&](const PlanOptions& options) {
    return OrDie(OrDie(Executor::Bind(OrDie(Lower(*ParseBody(body)->FindGraph("g"), options)), {}))
                     .Run(inputs));
  };
  const Tensors expected = run({}), actual = run(PlanOptions::Fastest());
  REQUIRE_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const Tensor a = actual[i].contiguous(), b = expected[i].contiguous();
    REQUIRE_EQ(a.nbytes(), b.nbytes());
    CHECK(std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0);
  }
}

/// Numbers of all magnitudes, and those for which functions are cut off.
Tensor Numbers(int64_t count) {
  Tensor numbers = at::randn({count}) * at::exp(at::randn({count}) * 4);
  const float special[] = {0.0F,
                           -0.0F,
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(),
                           1e-40F,
                           -1e-40F,
                           88.7F,
                           -88.7F,
                           103.9F,
                           -103.9F,
                           104.1F,
                           -104.1F,
                           100.5F,
                           -100.5F,
                           1e30F,
                           -1e30F};
  for (int64_t i = 0; i < std::min<int64_t>(count, std::ssize(special)); ++i)
    numbers[i] = special[i];
  return numbers;
}

TEST_CASE("activations and products have ATen's bits, also of numbers that are cut off") {
  at::manual_seed(5);
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    for (const int64_t count : {1, 8, 32, 33, 48, 64, 1000, 4096, 32768, 40000}) {
      const std::string type = fmt::format("f32[{}][1]cpu", count);
      CheckSameBits(fmt::format(R"(
  x = placeholder : {0}
  g = placeholder : {0}
  y = aten.silu.default(x) : {0}
  dx = aten.silu_backward.default(g, x) : {0}
  z = aten.mul.Tensor(x, g) : {0}
  output([y, dx, z])
)",
                                type),
                    {Numbers(count), at::randn({count})});
    }
  }
  at::set_num_threads(1);
}

TEST_CASE("complex products have ATen's bits: lines of any length, one operand broadcast") {
  at::manual_seed(6);
  for (const int64_t line : {1, 2, 3, 6, 8, 13, 16, 32}) {
    for (const int64_t heads : {1, 3}) {
      CheckSameBits(fmt::format(R"(
  x = placeholder : c64[2, 5, {1}, {0}][{2}, {3}, {0}, 1]cpu
  t = placeholder : c64[1, 5, 1, {0}][{4}, {0}, {0}, 1]cpu
  y = aten.mul.Tensor(x, t) : c64[2, 5, {1}, {0}][{2}, {3}, {0}, 1]cpu
  c = aten._conj.default(t) : c64[1, 5, 1, {0}][{4}, {0}, {0}, 1]cpu ~t
  d = aten.clone.default(c) : c64[1, 5, 1, {0}][{4}, {0}, {0}, 1]cpu
  z = aten.mul.Tensor(x, d) : c64[2, 5, {1}, {0}][{2}, {3}, {0}, 1]cpu
  output([y, d, z])
)",
                                line, heads, 5 * heads * line, heads * line, 5 * line),
                    {at::randn({2, 5, heads, line}, at::kComplexFloat),
                     at::randn({1, 5, 1, line}, at::kComplexFloat)});
    }
  }
}

TEST_CASE("sums over rows have ATen's bits, whatever the numbers of rows and columns") {
  at::manual_seed(7);
  for (const int64_t columns : {2, 7, 8, 16, 40, 64, 100}) {
    for (const int64_t rows : {1, 3, 4, 16, 31, 64, 300}) {
      CheckSameBits(fmt::format(R"(
  x = placeholder : f32[2, {0}, {1}][{2}, {1}, 1]cpu
  y = aten.sum.dim_IntList(x, [0, 1], True) : f32[1, 1, {1}][{1}, {1}, 1]cpu
  output([y])
)",
                                rows, columns, rows * columns),
                    {at::randn({2, rows, columns})});
    }
  }
}

TEST_CASE("what ATen would share between threads, or computes in another type, is left to it") {
  PlanStep step;
  step.op = "aten.silu.default";
  step.args.emplace_back();
  step.args[0].kind = ArgKind::kValue;
  step.args[0].slot = 0;
  const auto loop = [&](const Tensor& x, DType dtype) {
    return OwnLoopFor(step, {x},
                      {{.dtype = dtype, .sizes = x.sizes().vec(), .strides = x.strides().vec()}});
  };
  CHECK(loop(at::randn({40000}), DType::kF32) == nullptr);
  CHECK(loop(at::randn({64}).to(at::kBFloat16), DType::kBF16) == nullptr);
  CHECK(loop(at::randn({64}).to(at::kDouble), DType::kF64) == nullptr);
  CHECK(loop(at::randn({8, 8}).t(), DType::kF32) == nullptr);
  step.op = "aten.erfinv.default";
  CHECK(loop(at::randn({64}), DType::kF32) == nullptr);
}

TEST_CASE("roots are ATen's, of ordinary numbers and of others") {
  at::manual_seed(9);
  const RootsOfFloats roots = AtensRoots();
  if (roots == nullptr) return;  // the processor's
  for (const int64_t count : {1, 7, 8, 9, 40, 512, 1000}) {
    for (const bool is_ordinary : {true, false}) {
      const Tensor x =
          is_ordinary ? at::rand({count}) * at::exp(at::randn({count}) * 9) : Numbers(count);
      const Tensor expected = at::sqrt(x);
      Tensor actual = at::empty_like(x);
      roots(count, x.const_data_ptr<float>(), actual.mutable_data_ptr<float>());
      CHECK(std::memcmp(actual.const_data_ptr(), expected.const_data_ptr(), x.nbytes()) == 0);
      actual.copy_(x);  // in place
      roots(count, actual.const_data_ptr<float>(), actual.mutable_data_ptr<float>());
      CHECK(std::memcmp(actual.const_data_ptr(), expected.const_data_ptr(), x.nbytes()) == 0);
    }
  }
}

TEST_CASE("roots of what the loop does not take are left to the library") {
  const Loops* const loops = BestLoops();
  if (loops == nullptr) return;
  for (const float odd : {-1.0F, 1e-40F, 0x1p-97F, 0x1p97F, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> numbers(19, 4.0F), to(19, 5.0F);
    CHECK(loops->library_roots(numbers.data(), to.data(), 19));
    CHECK(to == std::vector<float>(19, 2.0F));
    numbers[11] = odd;
    to.assign(19, 5.0F);
    CHECK_FALSE(loops->library_roots(numbers.data(), to.data(), 19));
    CHECK(to == std::vector<float>(19, 5.0F));
  }
}

}  // namespace
}  // namespace strata
