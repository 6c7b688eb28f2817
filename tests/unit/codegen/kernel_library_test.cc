#include "runtime/codegen/kernel_library.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <doctest/doctest.h>

#include "passes/compile/dynamic_kernel.h"
#include "passes/compile/fuse.h"
#include "runtime/codegen/schedule.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;
using testing::ParseBody;
using Floats = std::vector<float>;

/// The kernel of a graph's operators, which make one.
Kernel SmallKernel(std::string_view body) {
  const auto module = ParseBody(body);
  OrDie(Fuse({.numerics = Fuse::Numerics::kFast, .min_nodes = 1}).Run(*module));
  REQUIRE_EQ(module->num_graphs(), 2);
  return OrDie(MakeKernel(module->graph(GraphId{1})));
}

/// A folder of the test's own, gone afterwards.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "strata-test-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path = pattern;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

/// Runs a kernel in two parts, as two threads would.
void Run(const Kernel& kernel, std::vector<void*> arguments) {
  const Folder folder;
  const auto library =
      OrDie(KernelLibrary::Load(std::span(&kernel, 1), {.cache_dir = folder.path}));
  const int64_t units = MakeSchedule(kernel).units;
  library->function(KernelId{0})(arguments.data(), 0, units / 2, kernel.dynamic_numbers().data());
  library->function(KernelId{0})(arguments.data(), units / 2, units,
                                 kernel.dynamic_numbers().data());
}

Floats Numbers(size_t count, float seed) {
  Floats numbers;
  for (size_t i = 0; i < count; ++i)
    numbers.push_back(std::sin(seed + 1.7F * static_cast<float>(i)) * 3.0F);
  return numbers;
}

TEST_CASE("multiply-add is rounded once, or twice if ATen rounds twice") {
  const Kernel kernel = SmallKernel(R"(
  x = placeholder : f32[64][1]cpu
  y = placeholder : f32[64][1]cpu
  a = aten.add.Tensor(x, y, alpha=0.3) : f32[64][1]cpu
  output([a])
)");
  Floats x = Numbers(64, 0.1F), y = Numbers(64, 0.2F), sum(64);
  for (const bool contracts : {true, false}) {
    const Folder folder;
    const auto library = OrDie(KernelLibrary::Load(
        std::span(&kernel, 1), {.cache_dir = folder.path, .contracts = contracts}));
    void* arguments[] = {x.data(), y.data(), sum.data()};
    library->function(KernelId{0})(arguments, 0, MakeSchedule(kernel).units,
                                   kernel.dynamic_numbers().data());
    int num_different = 0;  // from the other way
    for (size_t i = 0; i < sum.size(); ++i) {
      const volatile float product = 0.3F * y[i];
      const float once = std::fma(0.3F, y[i], x[i]), twice = product + x[i];
      CHECK_EQ(sum[i], contracts ? once : twice);
      num_different += once != twice ? 1 : 0;
    }
    CHECK(num_different > 0);
  }
}

/// A block mask of `queries` queries and keys, each of which sees all.
FlexKernel BlockMask(int64_t queries) {
  FlexKernel kernel;
  kernel.kind = FlexKernel::Kind::kBlockMask;
  kernel.queries = kernel.keys = queries;
  kernel.query_block = kernel.key_block = 4;
  kernel.mask_mod.role = FlexRole::kMask;
  kernel.mask_mod.result = {.op = -1, .number = 1.0, .kind = FlexProgram::Kind::kBool};
  return kernel;
}

TEST_CASE("equal kernels of flex attention have one code") {
  const FlexKernel kernels[] = {BlockMask(8), BlockMask(12), BlockMask(8)};
  const Folder folder;
  const auto library = OrDie(KernelLibrary::Load({}, kernels, {.cache_dir = folder.path}));
  const auto code = [&](int32_t i) { return library->flex_function(FlexKernelId{i}); };
  CHECK((code(0) == code(2)));
  CHECK((code(0) != code(1)));
  int32_t tensors[8][9];
  void* results[8];
  for (size_t i = 0; i < 8; ++i)
    results[i] = tensors[i];
  code(1)(results, 0, 1, nullptr);
  CHECK_EQ(tensors[2][0], 3);  // full blocks of the first row
  code(2)(results, 0, 1, nullptr);
  CHECK_EQ(tensors[2][0], 2);
}

TEST_CASE("a norm over rows: its sum, its scale, both results") {
  const Kernel kernel = SmallKernel(R"(
  x = placeholder : f32[6, 37][37, 1]cpu
  w = placeholder : f32[37][1]cpu
  p = aten.pow.Tensor_Scalar(x, 2) : f32[6, 37][37, 1]cpu
  m = aten.mean.dim(p, [1], True) : f32[6, 1][1, 1]cpu
  a = aten.add.Scalar(m, 1e-05) : f32[6, 1][1, 1]cpu
  r = aten.rsqrt.default(a) : f32[6, 1][1, 1]cpu
  y = aten.mul.Tensor(x, r) : f32[6, 37][37, 1]cpu
  z = aten.mul.Tensor(y, w) : f32[6, 37][37, 1]cpu
  output([r, z])
)");
  Floats x = Numbers(6 * 37, 1), w = Numbers(37, 2), r(6), z(6 * 37);
  Run(kernel, {x.data(), w.data(), r.data(), z.data()});
  for (size_t i = 0; i < 6; ++i) {
    double sum = 0;
    for (size_t j = 0; j < 37; ++j)
      sum += double{x[37 * i + j]} * double{x[37 * i + j]};
    const double scale = 1 / std::sqrt(sum / 37 + 1e-5);
    CHECK_EQ(r[i], doctest::Approx(scale).epsilon(1e-6));
    for (size_t j = 0; j < 37; ++j) {
      CHECK_EQ(z[37 * i + j],
               doctest::Approx(double{x[37 * i + j]} * scale * double{w[j]}).epsilon(1e-5));
    }
  }
}

TEST_CASE("softmax, and functions near the ends of their range") {
  const Kernel kernel = SmallKernel(R"(
  x = placeholder : f32[3, 5][5, 1]cpu
  y = aten._softmax.default(x, -1, False) : f32[3, 5][5, 1]cpu
  s = aten.silu.default(x) : f32[3, 5][5, 1]cpu
  t = aten.add.Tensor(y, s) : f32[3, 5][5, 1]cpu
  output([y, t])
)");
  Floats x = Numbers(15, 3), y(15), t(15);
  x[0] = 100;
  x[1] = -200;
  x[6] = -87.5F;
  Run(kernel, {x.data(), y.data(), t.data()});
  for (size_t i = 0; i < 3; ++i) {
    double most = -INFINITY, sum = 0;
    for (size_t j = 0; j < 5; ++j)
      most = std::max(most, double{x[5 * i + j]});
    for (size_t j = 0; j < 5; ++j)
      sum += std::exp(double{x[5 * i + j]} - most);
    for (size_t j = 0; j < 5; ++j) {
      const double value = double{x[5 * i + j]};
      const double softmax = std::exp(value - most) / sum;
      CHECK_EQ(y[5 * i + j], doctest::Approx(softmax).epsilon(1e-6));
      CHECK_EQ(t[5 * i + j],
               doctest::Approx(softmax + value / (1 + std::exp(-value))).epsilon(1e-6));
    }
  }
}

TEST_CASE("the largest element of a row is nan where one is nan") {
  constexpr size_t kColumns = 37;
  const Kernel kernel = SmallKernel(R"(
  x = placeholder : f32[37, 37][37, 1]cpu
  y = aten.amax.default(x, [-1]) : f32[37][1]cpu
  output([y])
)");
  Floats x = Numbers(kColumns * kColumns, 3), y(kColumns);
  for (size_t row = 1; row < kColumns; ++row)
    x[row * kColumns + row] = NAN;
  Run(kernel, {x.data(), y.data()});
  CHECK_EQ(y[0], *std::max_element(x.begin(), x.begin() + kColumns));
  for (size_t row = 1; row < kColumns; ++row)
    CHECK(std::isnan(y[row]));
}

TEST_CASE("strides, broadcasts and writes in place") {
  const Kernel kernel = SmallKernel(R"(
  x = placeholder : f32[4, 6][1, 4]cpu
  w = placeholder : f32[6][1]cpu
  c = placeholder : f32[][]cpu
  a = aten.mul_.Tensor(x, w) : f32[4, 6][1, 4]cpu ~x
  b = aten.sub.Tensor(a, c) : f32[4, 6][6, 1]cpu
  output([b])
)");
  const Floats before = Numbers(24, 5);
  Floats x = before, w = Numbers(6, 6), c = {0.5F}, b(24);
  REQUIRE_EQ(kernel.written_inputs, std::vector<int32_t>{0});
  Run(kernel, {x.data(), w.data(), c.data(), b.data()});
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 6; ++j) {
      CHECK_EQ(x[i + 4 * j], before[i + 4 * j] * w[j]);
      CHECK_EQ(b[6 * i + j], before[i + 4 * j] * w[j] - 0.5F);
    }
  }
}

constexpr std::string_view kSmall = R"(
  x = placeholder : f32[4][1]cpu
  a = aten.neg.default(x) : f32[4][1]cpu
  output([a])
)";

TEST_CASE("a built kernel is found again, and rebuilt if its file is damaged") {
  const Folder folder;
  const Kernel kernel = SmallKernel(kSmall);
  const auto load = [&] {
    return KernelLibrary::Load(std::span(&kernel, 1), {.cache_dir = folder.path});
  };
  CHECK(OrDie(load())->was_built());
  CHECK_FALSE(OrDie(load())->was_built());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
    if (entry.path().extension() != ".so") continue;
    std::ofstream(entry.path(), std::ios::trunc) << "no object";
    CHECK(OrDie(load())->was_built());
    CHECK_FALSE(OrDie(load())->was_built());
  }
}

TEST_CASE("a missing and a failing compiler are reported") {
  const Folder folder;
  const Kernel kernel = SmallKernel(kSmall);
  const auto load = [&](const std::string& compiler) {
    return MessageOf(KernelLibrary::Load(std::span(&kernel, 1),
                                         {.cache_dir = folder.path, .compiler = compiler}));
  };
  CHECK_EQ(load("/nowhere/c++"),
           "no C++ compiler: /nowhere/c++: install g++, or name one by the variable CXX");
  const std::string message = load("false");
  CHECK(message.starts_with("cannot build kernels: "));
  CHECK_EQ(load("false"), message);
  std::vector<std::string> names;  // the source that was not built, once
  for (const auto& entry : std::filesystem::directory_iterator(folder.path))
    names.push_back(entry.path().string());
  REQUIRE_EQ(names.size(), 1);
  CHECK(message.find(names[0]) != std::string::npos);
}

TEST_CASE("a full disk is an error, and no partial source is kept") {
  const Folder folder;
  const Kernel kernel = SmallKernel(R"(
  x = placeholder : f32[64][1]cpu
  a = aten.neg.default(x) : f32[64][1]cpu
  output([a])
)");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit hundred_bytes{.rlim_cur = 100, .rlim_max = 100};
    ::setrlimit(RLIMIT_FSIZE, &hundred_bytes);
    const std::string message =
        MessageOf(KernelLibrary::Load(std::span(&kernel, 1), {.cache_dir = folder.path}));
    std::_Exit(message.starts_with("cannot write: ") ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("a result reuses the buffer of an operand that no later loop reads") {
  const Kernel kernel = SmallKernel(R"(
  x = placeholder : f32[6, 37][37, 1]cpu
  h = placeholder : f32[6, 37][37, 1]cpu
  w = placeholder : f32[37][1]cpu
  g = placeholder : f32[6, 37][37, 1]cpu
  a = aten.add.Tensor(x, h) : f32[6, 37][37, 1]cpu
  p = aten.pow.Tensor_Scalar(a, 2) : f32[6, 37][37, 1]cpu
  m = aten.mean.dim(p, [1], True) : f32[6, 1][1, 1]cpu
  r = aten.rsqrt.default(m) : f32[6, 1][1, 1]cpu
  y = aten.mul.Tensor(a, r) : f32[6, 37][37, 1]cpu
  z = aten.mul.Tensor(y, w) : f32[6, 37][37, 1]cpu
  v = aten.add.Tensor(z, g) : f32[6, 37][37, 1]cpu
  output([a, r, z, v])
)");
  const Schedule schedule = MakeSchedule(kernel);
  constexpr int kX = 0, kW = 2, kG = 3, kA = 0, kR = 1, kZ = 2, kV = 3;
  // The sum is computed again after the mean is known.
  CHECK_FALSE(MayOverwrite(kernel, schedule, kX, kA));
  CHECK_FALSE(MayOverwrite(kernel, schedule, kG, kA));
  CHECK(MayOverwrite(kernel, schedule, kX, kZ));
  CHECK(MayOverwrite(kernel, schedule, kG, kV));
  CHECK_FALSE(MayOverwrite(kernel, schedule, kW, kZ));
  CHECK_FALSE(MayOverwrite(kernel, schedule, kX, kR));

  const Floats h = Numbers(6 * 37, 2), w = Numbers(37, 3);
  Floats x = Numbers(6 * 37, 1), g = Numbers(6 * 37, 4), a(6 * 37), r(6), z(6 * 37), v(6 * 37);
  const auto run = [&](Floats& to_z, Floats& to_v) {
    Run(kernel, {x.data(), const_cast<float*>(h.data()), const_cast<float*>(w.data()), g.data(),
                 a.data(), r.data(), to_z.data(), to_v.data()});
  };
  run(z, v);
  run(x, g);
  CHECK_EQ(x, z);
  CHECK_EQ(g, v);
}

}  // namespace
}  // namespace strata
