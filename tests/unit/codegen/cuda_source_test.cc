#include "runtime/codegen/cuda_source.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/compile/dynamic_kernel.h"
#include "passes/compile/fuse.h"
#include "tests/support/cuda_emulator.h"
#include "tests/support/graphs.h"

namespace strata {
namespace {

using testing::OrDie;
using testing::ParseBody;

Kernel KernelOf(std::string_view body) {
  const auto module = ParseBody(body);
  OrDie(Fuse({.numerics = Fuse::Numerics::kFast}).Run(*module));
  return OrDie(MakeKernel(module->graph(GraphId{1})));
}

TEST_CASE("an elementwise chain runs a thread per element in a grid-stride loop") {
  const Kernel kernel = KernelOf(R"(
  x = placeholder : f32[4, 600][600, 1]cpu
  w = placeholder : f32[600][1]cpu
  a = aten.mul.Tensor(x, w) : f32[4, 600][600, 1]cpu
  b = aten.add.Scalar(a, 0.5) : f32[4, 600][600, 1]cpu
  output([b])
)");
  CHECK_EQ(
      CudaFunction(kernel, "k"),
      R"(extern "C" __global__ void __launch_bounds__(256) k(const float* __restrict__ a0, const float* __restrict__ a1, float* a2) {
  for (int e = blockIdx.x * (int)blockDim.x + threadIdx.x; e < 2400; e += (int)(gridDim.x * blockDim.x)) {
    const int i1 = e % 600;
    const int i0 = (e / 600);
    const float v0 = strata_load(a0[0 + i0 * 600 + i1 * 1]);
    const float v1 = strata_load(a1[0 + i1 * 1]);
    const float v2 = v0 * v1;
    const float v3 = (float)0.5;
    const float v4 = v2 + v3;
    strata_store(a2 + (0 + i0 * 600 + i1 * 1), v4);
  }
}
)");
  CHECK_EQ(LaunchOf(kernel).blocks, 10);
  CHECK_EQ(LaunchOf(kernel).threads, 256);
}

TEST_CASE("row sums run a block per row and are combined in a fixed order") {
  const Kernel kernel = KernelOf(R"(
  x = placeholder : f32[4, 600][600, 1]cpu
  s = aten.sum.dim_IntList(x, [1], True) : f32[4, 1][1, 1]cpu
  y = aten.sub.Tensor(x, s) : f32[4, 600][600, 1]cpu
  output([s, y])
)");
  CHECK_EQ(
      CudaFunction(kernel, "k"),
      R"(extern "C" __global__ void __launch_bounds__(1024) k(const float* __restrict__ a0, float* a1, float* a2) {
  for (int row = blockIdx.x; row < 4; row += gridDim.x) {
    const int i0 = row;
    float part1 = 0;
    for (int column = threadIdx.x; column < 600; column += 1024) {
      const int i1 = column;
      const float v0 = strata_load(a0[0 + i0 * 600 + i1 * 1]);
      part1 = strata_join_sum()(part1, v0);
    }
    const float v1 = strata_join(part1, strata_join_sum());
    if (threadIdx.x == 0) {
      strata_store(a1 + (0 + i0 * 1), v1);
    }
    for (int column = threadIdx.x; column < 600; column += 1024) {
      const int i1 = column;
      const float v0 = strata_load(a0[0 + i0 * 600 + i1 * 1]);
      const float v2 = v0 - v1;
      strata_store(a2 + (0 + i0 * 600 + i1 * 1), v2);
    }
  }
}
)");
  CHECK_EQ(LaunchOf(kernel).blocks, 4);
  CHECK_EQ(LaunchOf(kernel).threads, 1024);
}

const std::vector<Kernel>& SomeKernels() {
  static const std::vector<Kernel> kernels = {KernelOf(R"(
  x = placeholder : f32[4, 600][600, 1]cpu
  g = placeholder : bf16[4, 600][600, 1]cpu
  a = aten._to_copy.default(g, dtype=torch.float32) : f32[4, 600][600, 1]cpu
  b = aten.silu_backward.default(a, x) : f32[4, 600][600, 1]cpu
  c = aten._to_copy.default(b, dtype=torch.bfloat16) : bf16[4, 600][600, 1]cpu
  d = aten.tanh.default(b) : f32[4, 600][600, 1]cpu
  output([c, d])
)"),
                                              KernelOf(R"(
  x = placeholder : f32[4, 600][600, 1]cpu
  y = aten._log_softmax.default(x, -1, False) : f32[4, 600][600, 1]cpu
  z = aten.exp.default(y) : f32[4, 600][600, 1]cpu
  output([y, z])
)"),
                                              KernelOf(R"(
  x = placeholder : f32[5, 37][37, 1]cpu
  s = aten.sum.dim_IntList(x, [1], True) : f32[5, 1][1, 1]cpu
  y = aten.sub.Tensor(x, s) : f32[5, 37][37, 1]cpu
  output([s, y])
)"),
                                              KernelOf(R"(
  x = placeholder : f32[4, 6][1, 4]cpu
  w = placeholder : f32[6][1]cpu
  a = aten.mul_.Tensor(x, w) : f32[4, 6][1, 4]cpu ~x
  b = aten.sub.Tensor(a, w) : f32[4, 6][6, 1]cpu
  output([b])
)")};
  return kernels;
}

TEST_CASE("more than 2^31 elements use 64-bit indices; pointers written in place are not const") {
  const Kernel large = KernelOf(R"(
  x = placeholder : f32[65536, 65536][65536, 1]cpu
  a = aten.neg.default(x) : f32[65536, 65536][65536, 1]cpu
  b = aten.exp.default(a) : f32[65536, 65536][65536, 1]cpu
  output([b])
)");
  CHECK(CudaFunction(large, "k").find("for (int64_t first = ") != std::string::npos);
  const std::string in_place = CudaFunction(SomeKernels()[3], "k");
  CHECK(in_place.find("__restrict__") == std::string::npos);
}

Kernel LargeKernel(std::string_view size) {
  return KernelOf(fmt::format(R"(
  x = placeholder : bf16[{0}, 1024][1024, 1]cpu
  y = placeholder : bf16[{0}, 1024][1024, 1]cpu
  a = aten.mul.Tensor(x, y) : bf16[{0}, 1024][1024, 1]cpu
  b = aten.neg.default(a) : bf16[{0}, 1024][1024, 1]cpu
  output([a, b])
)",
                              size));
}

TEST_CASE("in large tensors a thread loads four elements before it computes the first") {
  const Kernel kernel = LargeKernel("1024");
  CHECK_EQ(
      CudaFunction(kernel, "k"),
      R"(extern "C" __global__ void __launch_bounds__(256) k(const strata_bf16* __restrict__ a0, const strata_bf16* __restrict__ a1, strata_bf16* a2, strata_bf16* a3) {
  for (int first = blockIdx.x * (int)1024 + threadIdx.x; first < 1048576; first += gridDim.x * (int)1024) {
    float load0[4];
    float load1[4];
    #pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int e = first + part * 256;
      const int i0 = e;
      load0[part] = strata_load(a0[0 + i0 * 1]);
      load1[part] = strata_load(a1[0 + i0 * 1]);
    }
    #pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int e = first + part * 256;
      const int i0 = e;
      const float v0 = load0[part];
      const float v1 = load1[part];
      const float v2 = strata_round(v0 * v1);
      const float v3 = strata_round(-v2);
      strata_store(a2 + (0 + i0 * 1), v2);
      strata_store(a3 + (0 + i0 * 1), v3);
    }
  }
}
)");
  CHECK_EQ(LaunchOf(kernel).blocks, 1024);
  // The last block has elements for some of its threads.
  const Kernel uneven[] = {KernelOf(R"(
  x = placeholder : f32[1031, 1021][1021, 1]cpu
  w = placeholder : f32[1021][1]cpu
  a = aten.mul.Tensor(x, w) : f32[1031, 1021][1021, 1]cpu
  b = aten.neg.default(a) : f32[1031, 1021][1021, 1]cpu
  output([b])
)")};
  CHECK_EQ(LaunchOf(uneven[0]).blocks, 1028);
  size_t num_bitwise = 0;
  CHECK_EQ(testing::CompareWithCpp(uneven, num_bitwise), "");
  CHECK_EQ(num_bitwise, 1);
}

TEST_CASE("a kernel without rows is launched with a grid of one block") {
  Kernel kernel = KernelOf(R"(
  x = placeholder : f32[4, 600][600, 1]cpu
  s = aten.sum.dim_IntList(x, [1], True) : f32[4, 1][1, 1]cpu
  y = aten.sub.Tensor(x, s) : f32[4, 600][600, 1]cpu
  output([s, y])
)");
  kernel.sizes[0] = 0;
  CHECK_EQ(kernel.rows(), 0);
  CHECK_EQ(LaunchOf(kernel).blocks, 1);
}

TEST_CASE("emulated CUDA computes the same values as the C++ kernels") {
  size_t num_bitwise = 0;
  CHECK_EQ(testing::CompareWithCpp(SomeKernels(), num_bitwise), "");
  CHECK(num_bitwise >= 1);  // strides and writes in place: no sum, no exponential
}

}  // namespace
}  // namespace strata
