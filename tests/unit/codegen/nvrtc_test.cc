#include "runtime/codegen/nvrtc.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "passes/compile/dynamic_kernel.h"
#include "passes/compile/fuse.h"
#include "tests/support/graphs.h"
#include "tests/support/results.h"
#include "tests/support/temp_dir.h"

namespace strata {
namespace {

using testing::MessageOf;
using testing::OrDie;

constexpr const char* kSource = "extern \"C\" __global__ void k(float* x) { *x = 1.0f; }";

/// Whether NVRTC is here: it comes with CUDA, and needs no GPU.
bool HasNvrtc(const std::string& cache) {
  const auto image = CompileCudaSource(kSource, 90, {.cache_dir = cache});
  if (image) return true;
  REQUIRE_EQ(image.error().code(), ErrorCode::kNotFound);
  MESSAGE("skipped: ", image.error().message());
  return false;
}

bool Holds(const CudaImage& image, std::string_view text) {
  const std::string_view bytes(reinterpret_cast<const char*>(image.cubin.data()),
                               image.cubin.size());
  return bytes.find(text) != std::string_view::npos;
}

TEST_CASE("kernels compile to machine code of each architecture, one function per kernel") {
  const testing::TempDir folder;
  if (!HasNvrtc(folder.path())) return;
  const auto module = testing::ParseBody(R"(
  x = placeholder : f32[4, 600][600, 1]cpu
  y = aten._log_softmax.default(x, -1, False) : f32[4, 600][600, 1]cpu
  z = aten.exp.default(y) : f32[4, 600][600, 1]cpu
  output([y, z])
)");
  OrDie(Fuse({.numerics = Fuse::Numerics::kFast}).Run(*module));
  const Kernel kernel = OrDie(MakeKernel(module->graph(GraphId{1})));
  const Kernel kernels[] = {kernel, kernel};
  for (const int32_t arch : {80, 90, 100}) {
    CAPTURE(arch);
    const CudaImage image = OrDie(CompileCuda(kernels, arch, {.cache_dir = folder.path()}));
    CHECK(image.was_built);
    CHECK(Holds(image, "strata_kernel_0"));
    CHECK(Holds(image, "strata_kernel_1"));
  }
}

/// Where a library lies that this process has loaded; "": nowhere.
std::string PathOfLoaded(std::string_view name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path != std::string::npos && line.find(name, path) != std::string::npos)
      return line.substr(path);
  }
  return "";
}

TEST_CASE("NVRTC is found in wheels, outside of the linker's search path") {
  const testing::TempDir folder;
  constexpr const char* kLinker = "/lib64/ld-linux-x86-64.so.2";
  if (!HasNvrtc(folder.path()) || !std::filesystem::exists(kLinker)) return;
  const std::string library = PathOfLoaded("/libnvrtc.so");
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  if (library.empty() || program.find("ld-linux") != std::string::npos) return;
  const std::string command =
      fmt::format("STRATA_NVRTC='{}' {} --inhibit-cache '{}' -tc='kernels become*' > '{}' 2>&1",
                  library, kLinker, program, folder.path() + "/log");
  CHECK_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
}

TEST_CASE("NaN and infinite constants compile") {
  const testing::TempDir folder;
  if (!HasNvrtc(folder.path())) return;
  const auto module = testing::ParseBody(R"(
  x = placeholder : f32[8][1]cpu
  a = aten.mul.Scalar(x, inf) : f32[8][1]cpu
  b = aten.add.Scalar(a, nan) : f32[8][1]cpu
  output([a, b])
)");
  OrDie(Fuse().Run(*module));
  const Kernel kernels[] = {OrDie(MakeKernel(module->graph(GraphId{1})))};
  CHECK(CompileCuda(kernels, 90, {.cache_dir = folder.path()}));
}

TEST_CASE("compiled code is cached per architecture and recompiled if its file is damaged") {
  const testing::TempDir folder;
  if (!HasNvrtc(folder.path())) return;
  const CudaImage again = OrDie(CompileCudaSource(kSource, 90, {.cache_dir = folder.path()}));
  CHECK_FALSE(again.was_built);
  CHECK(Holds(again, "ELF"));
  CHECK(OrDie(CompileCudaSource(kSource, 80, {.cache_dir = folder.path()})).was_built);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    CHECK_EQ(entry.path().extension(), ".cubin");
    std::ofstream(entry.path(), std::ios::trunc) << "no image";
  }
  for (const int32_t arch : {80, 90}) {
    CHECK(OrDie(CompileCudaSource(kSource, arch, {.cache_dir = folder.path()})).was_built);
    CHECK_FALSE(OrDie(CompileCudaSource(kSource, arch, {.cache_dir = folder.path()})).was_built);
  }
}

TEST_CASE("a compilation error shows the compiler's line, and no file is kept") {
  const testing::TempDir folder;
  if (!HasNvrtc(folder.path())) return;
  const std::string message = MessageOf(
      CompileCudaSource("__global__ void k() { nothing; }", 90, {.cache_dir = folder.path()}));
  CHECK_EQ(message,
           "cannot compile kernels: NVRTC for sm_90: kernels.cu(1): error: identifier \"nothing\" "
           "is undefined");
}

TEST_CASE("without NVRTC the error says what to do") {
  CHECK_EQ(MessageOf(CompileCudaSource(kSource, 90, {.library = "libno-nvrtc.so"})),
           "no NVRTC to compile kernels for the GPU: libno-nvrtc.so: run ./dev setup cuda, or name "
           "one by the variable STRATA_NVRTC");
}

}  // namespace
}  // namespace strata
