#include "tests/support/cuda_emulator.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <random>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "runtime/codegen/cuda_flex_source.h"
#include "runtime/codegen/cuda_source.h"
#include "runtime/codegen/formulas.h"
#include "runtime/codegen/kernel_library.h"
#include "runtime/codegen/schedule.h"
#include "tests/support/graphs.h"

namespace strata::testing {
namespace {

constexpr std::string_view kBefore =
    R"(// The headers of C alone: those of C++ take longer to compile than kernels.
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>
#define __device__
#define __global__
#define __launch_bounds__(threads)
#define __shared__ static
namespace emulated {
struct Place { unsigned x, y, z; };
static Place threadIdx, blockIdx, blockDim, gridDim;
static float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
static double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
static unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
static ucontext_t before;
static jmp_buf scheduler;
struct Thread { ucontext_t context; jmp_buf place; char* stack; bool has_begun, is_done; };
static Thread threads[1024];
static void __syncthreads() {
  if (_setjmp(threads[threadIdx.x].place) == 0) _longjmp(scheduler, 1);
}
static float shuffled[1024];
static float __shfl_xor_sync(unsigned, float x, int mask) {
  shuffled[threadIdx.x] = x;
  __syncthreads();
  x = shuffled[threadIdx.x ^ mask];
  __syncthreads();
  return x;
}
)";

// The grid, block by block; within a block thread by thread, each up to its next barrier.
constexpr std::string_view kAfter = R"(
static void (*entry)(void* const*);
static void* const* entry_arguments;
static void Begin() {
  entry(entry_arguments);
  threads[threadIdx.x].is_done = true;
  _longjmp(scheduler, 1);
}
// Runs a thread up to its next barrier. Jumps leave the signal mask alone, which contexts ask the system for.
static void Resume(Thread& thread) {
  if (_setjmp(scheduler) != 0) return;
  if (thread.has_begun) _longjmp(thread.place, 1);
  thread.has_begun = true;
  swapcontext(&before, &thread.context);
}
static void RunGrid(void (*kernel)(void* const*), void* const* arguments, long blocks, int count) {
  constexpr unsigned kStack = 64 << 10;
  entry = kernel;
  entry_arguments = arguments;
  gridDim = {(unsigned)blocks, 1, 1};
  blockDim = {(unsigned)count, 1, 1};
  for (int i = 0; i < count; ++i)
    threads[i].stack = (char*)malloc(kStack);
  for (long block = 0; block < blocks; ++block) {
    blockIdx = {(unsigned)block, 0, 0};
    for (int i = 0; i < count; ++i) {
      threads[i].has_begun = threads[i].is_done = false;
      getcontext(&threads[i].context);
      threads[i].context.uc_stack.ss_sp = threads[i].stack;
      threads[i].context.uc_stack.ss_size = kStack;
      threads[i].context.uc_link = nullptr;
      makecontext(&threads[i].context, Begin, 0);
    }
    for (bool any = true; any;) {
      any = false;
      for (int i = 0; i < count; ++i) {
        if (threads[i].is_done) continue;
        threadIdx = {(unsigned)i, 0, 0};
        Resume(threads[i]);
        any = any || !threads[i].is_done;
      }
    }
  }
  for (int i = 0; i < count; ++i)
    free(threads[i].stack);
}
)";

/// `run_<name>`, which launches the function on arguments given by address.
std::string EntryOf(std::string_view function, std::string_view name, std::string_view arguments) {
  return fmt::format(
      "static void Entry_{1}(void* const* a) {{ {0}({2}); }}\n"
      "extern \"C\" void run_{1}(void* const* a, long blocks, int threads) "
      "{{ RunGrid(Entry_{1}, a, blocks, threads); }}\n",
      function, name, arguments);
}

std::string ArgumentsOf(const Kernel& kernel) {
  std::string arguments;
  for (const Kernel::Access& access : kernel.accesses) {
    arguments += fmt::format("{}({}*)a[{}]", arguments.empty() ? "" : ", ",
                             MemoryType(access.dtype), access.argument);
  }
  return arguments;
}

std::string ArgumentsOf(const FlexKernel& kernel) {
  std::string arguments;
  for (size_t i = 0; i < NumArguments(kernel); ++i)
    arguments += fmt::format("{}a[{}]", i == 0 ? "" : ", ", i);
  return arguments;
}

/// The elements of an argument in the kernel's type.
struct Numbers {
  DType dtype = DType::kF32;
  std::vector<char> bytes;

  double At(size_t i) const {
    switch (dtype) {
      case DType::kF64: {
        double value = 0;
        std::memcpy(&value, bytes.data() + 8 * i, 8);
        return value;
      }
      case DType::kBF16: {
        uint16_t half = 0;
        std::memcpy(&half, bytes.data() + 2 * i, 2);
        const uint32_t bits = uint32_t{half} << 16;
        float value = 0;
        std::memcpy(&value, &bits, 4);
        return value;
      }
      default: {
        float value = 0;
        std::memcpy(&value, bytes.data() + 4 * i, 4);
        return value;
      }
    }
  }
  void Set(size_t i, float value) {
    const double wide = value;
    uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    const auto half = static_cast<uint16_t>(bits >> 16);
    if (dtype == DType::kF64) std::memcpy(bytes.data() + 8 * i, &wide, 8);
    if (dtype == DType::kBF16) std::memcpy(bytes.data() + 2 * i, &half, 2);
    if (dtype == DType::kF32) std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  size_t size() const { return bytes.size() / static_cast<size_t>(ByteSize(dtype)); }
};

/// Random arguments, as large as the largest access.
std::vector<Numbers> MakeArguments(const Kernel& kernel, std::mt19937& random) {
  std::vector<Numbers> arguments(static_cast<size_t>(kernel.num_arguments));
  for (const Kernel::Access& access : kernel.accesses) {
    int64_t last = 0;
    for (size_t dim = 0; dim < kernel.sizes.size(); ++dim)
      last += (kernel.sizes[dim] - 1) * access.strides[dim];
    Numbers& numbers = arguments[static_cast<size_t>(access.argument)];
    numbers.dtype = access.dtype;
    const size_t bytes = static_cast<size_t>((last + 1) * ByteSize(access.dtype));
    numbers.bytes.resize(std::max(numbers.bytes.size(), bytes));
  }
  // Positive: sums of squares, denominators and square roots get valid operands.
  std::uniform_real_distribution<float> uniform(0.05F, 2.0F);
  for (Numbers& numbers : arguments) {
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers.Set(i, uniform(random));
  }
  return arguments;
}

std::vector<void*> Addresses(std::vector<Numbers>& arguments) {
  std::vector<void*> addresses;
  for (Numbers& numbers : arguments)
    addresses.push_back(numbers.bytes.data());
  return addresses;
}

}  // namespace

EmulatedCuda::EmulatedCuda(std::string_view cuda, std::string_view entries) {
  std::string folder = (std::filesystem::temp_directory_path() / "strata-cuda-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const std::string source = folder + "/kernels.cc", object = folder + "/kernels.so";
  std::ofstream(source) << kBefore << cuda << kAfter << entries << "}\n";
  const std::string command =
      fmt::format("c++ -std=c++17 -O1 -fPIC -shared -w -ffp-contract=off {} -o {} 2>{}/log", source,
                  object, folder);
  INFO(command);
  const int failed = std::system(command.c_str());  // NOLINT(concurrency-mt-unsafe)
  REQUIRE_EQ(failed, 0);
  handle_ = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(handle_ != nullptr);
  std::filesystem::remove_all(folder);
}

EmulatedCuda::~EmulatedCuda() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

void EmulatedCuda::Launch(const std::string& name, const CudaLaunch& launch,
                          std::span<void* const> arguments) const {
  using Function = void (*)(void* const* arguments, int64_t blocks, int32_t threads);
  const auto function = reinterpret_cast<Function>(::dlsym(handle_, ("run_" + name).c_str()));
  const bool is_there = function != nullptr;
  REQUIRE(is_there);
  function(arguments.data(), launch.blocks, launch.threads);
}

EmulatedCuda Emulated(std::span<const Kernel> kernels) {
  std::string entries;
  for (size_t i = 0; i < kernels.size(); ++i) {
    entries +=
        EntryOf(fmt::format("strata_kernel_{}", i), std::to_string(i), ArgumentsOf(kernels[i]));
  }
  return EmulatedCuda(CudaSource(kernels), entries);
}

EmulatedCuda Emulated(std::span<const FlexKernel> kernels) {
  std::string entries;
  for (size_t i = 0; i < kernels.size(); ++i) {
    for (size_t part = 0; part < LaunchesOf(kernels[i]).size(); ++part) {
      const std::string name = fmt::format("{}_{}", i, part);
      entries += EntryOf("strata_flex_" + name, name, ArgumentsOf(kernels[i]));
    }
  }
  return EmulatedCuda(CudaFlexSource(kernels), entries);
}

std::string CompareWithCpp(std::span<const Kernel> kernels, size_t& num_bitwise) {
  const EmulatedCuda cuda = Emulated(kernels);
  const auto cpp = OrDie(KernelLibrary::Load(kernels));
  std::mt19937 random(11);
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::vector<Numbers> wanted = MakeArguments(kernels[i], random);
    std::vector<Numbers> got = wanted;
    cpp->function(KernelId{static_cast<int32_t>(i)})(Addresses(wanted).data(), 0,
                                                     MakeSchedule(kernels[i]).units,
                                                     kernels[i].dynamic_numbers().data());
    cuda.Launch(std::to_string(i), LaunchOf(kernels[i]), Addresses(got));
    bool is_bitwise = true;
    for (size_t argument = 0; argument < wanted.size(); ++argument) {
      is_bitwise = is_bitwise && wanted[argument].bytes == got[argument].bytes;
      // Sums are computed in another order; bf16 rounds at 2^-9.
      const double tolerance = wanted[argument].dtype == DType::kBF16 ? 0.02 : 2e-5;
      for (size_t k = 0; k < wanted[argument].size(); ++k) {
        const double a = wanted[argument].At(k), b = got[argument].At(k);
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        if (std::abs(a - b) <= tolerance * (1 + std::abs(a))) continue;
        return fmt::format("kernel {}: element {} of argument {}: C++ {}, CUDA {}\n{}", i, k,
                           argument, a, b, CudaFunction(kernels[i], "k"));
      }
    }
    if (is_bitwise) ++num_bitwise;
  }
  return "";
}

}  // namespace strata::testing
