#include "runtime/codegen/nvrtc.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "runtime/codegen/cuda_source.h"
#include "runtime/codegen/kernel_cache.h"

#ifndef STRATA_NVRTC_LIBRARIES
#define STRATA_NVRTC_LIBRARIES ""
#endif

namespace strata {
namespace {

namespace fs = std::filesystem;

struct NvrtcProgram;

/// NVRTC's functions, by its C interface, which has not changed since CUDA 8 (cubin: 11.1).
struct Nvrtc {
  using Result = int;  // 0: success
  Result (*Version)(int* major, int* minor) = nullptr;
  Result (*Create)(NvrtcProgram** program, const char* source, const char* name, int num_headers,
                   const char* const* headers, const char* const* include_names) = nullptr;
  Result (*Destroy)(NvrtcProgram** program) = nullptr;
  Result (*Compile)(NvrtcProgram* program, int num_options, const char* const* options) = nullptr;
  Result (*LogSize)(NvrtcProgram* program, size_t* size) = nullptr;
  Result (*Log)(NvrtcProgram* program, char* log) = nullptr;
  Result (*CubinSize)(NvrtcProgram* program, size_t* size) = nullptr;
  Result (*Cubin)(NvrtcProgram* program, char* cubin) = nullptr;
  const char* (*ErrorText)(Result result) = nullptr;
  std::string version;
};

template <class Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

std::vector<std::string> Candidates(const std::string& wanted) {
  if (!wanted.empty()) return {wanted};
  if (const char* named = std::getenv("STRATA_NVRTC"); named != nullptr && *named != '\0') {
    return {named};
  }
  std::vector<std::string> names = {"libnvrtc.so.13"};
  std::string_view rest = STRATA_NVRTC_LIBRARIES;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    names.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

/// NVRTC opens the library of its built-in functions by name alone: found where the linker looks,
/// which is not where wheels lie, or where it is loaded already.
void LoadBuiltins(const Nvrtc& nvrtc) {
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(nvrtc.Version), &info) == 0) return;
  const fs::path beside = fs::path(info.dli_fname).parent_path();
  const std::string name = fmt::format("libnvrtc-builtins.so.{}", nvrtc.version);
  (void)::dlopen((beside / name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

/// Stays loaded: it keeps state of its own.
Result<Nvrtc> LoadNvrtc(const std::string& wanted) {
  void* library = nullptr;
  const std::vector<std::string> names = Candidates(wanted);
  for (const std::string& name : names) {
    library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    return Error(
        ErrorCode::kNotFound,
        "no NVRTC to compile kernels for the GPU: {}: run ./dev setup cuda, or name one by "
        "the variable STRATA_NVRTC",
        fmt::join(names, ", "));
  }
  Nvrtc nvrtc;
  const bool is_complete = Find(library, "nvrtcVersion", nvrtc.Version) &&
                           Find(library, "nvrtcCreateProgram", nvrtc.Create) &&
                           Find(library, "nvrtcDestroyProgram", nvrtc.Destroy) &&
                           Find(library, "nvrtcCompileProgram", nvrtc.Compile) &&
                           Find(library, "nvrtcGetProgramLogSize", nvrtc.LogSize) &&
                           Find(library, "nvrtcGetProgramLog", nvrtc.Log) &&
                           Find(library, "nvrtcGetCUBINSize", nvrtc.CubinSize) &&
                           Find(library, "nvrtcGetCUBIN", nvrtc.Cubin) &&
                           Find(library, "nvrtcGetErrorString", nvrtc.ErrorText);
  int major = 0, minor = 0;
  if (!is_complete || nvrtc.Version(&major, &minor) != 0) {
    return Error(ErrorCode::kNotFound, "not NVRTC: {}: name it by the variable STRATA_NVRTC",
                 names.back());
  }
  nvrtc.version = fmt::format("{}.{}", major, minor);
  LoadBuiltins(nvrtc);
  return nvrtc;
}

std::vector<std::string> OptionsFor(int32_t arch) {
  return {fmt::format("--gpu-architecture=sm_{}", arch), "--std=c++17", "--fmad=false"};
}

std::string FirstError(std::string_view log) {
  std::string_view line = log.substr(0, log.find('\n'));
  if (const size_t error = log.find("error"); error != std::string_view::npos) {
    const size_t begin = log.rfind('\n', error);
    line = log.substr(begin == std::string_view::npos ? 0 : begin + 1);
    line = line.substr(0, line.find('\n'));
  }
  return std::string(line);
}

Result<std::vector<std::byte>> Compile(const Nvrtc& nvrtc, const std::string& source,
                                       int32_t arch) {
  NvrtcProgram* program = nullptr;
  int failed = nvrtc.Create(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr);
  if (failed != 0) return Error("cannot compile kernels: NVRTC: {}", nvrtc.ErrorText(failed));
  const std::vector<std::string> words = OptionsFor(arch);
  std::vector<const char*> options;
  for (const std::string& word : words)
    options.push_back(word.c_str());
  failed = nvrtc.Compile(program, static_cast<int>(options.size()), options.data());

  std::vector<std::byte> cubin;
  std::string why;
  size_t size = 0;
  if (failed != 0) {
    why = nvrtc.ErrorText(failed);
    if (nvrtc.LogSize(program, &size) == 0 && size > 1) {
      std::string log(size, '\0');
      if (nvrtc.Log(program, log.data()) == 0) why = FirstError(log.data());
    }
  } else if (failed = nvrtc.CubinSize(program, &size); failed == 0) {
    cubin.resize(size);
    failed = nvrtc.Cubin(program, reinterpret_cast<char*>(cubin.data()));
    if (failed != 0) why = nvrtc.ErrorText(failed);
  }
  nvrtc.Destroy(&program);
  if (failed != 0) return Error("cannot compile kernels: NVRTC for sm_{}: {}", arch, why);
  return cubin;
}

/// Nothing: there is none, or what is there is no image.
std::optional<std::vector<std::byte>> ReadImage(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  constexpr char kElf[] = {0x7f, 'E', 'L', 'F'};
  if (bytes.size() < sizeof(kElf) || std::memcmp(bytes.data(), kElf, sizeof(kElf)) != 0) {
    return std::nullopt;
  }
  std::vector<std::byte> image(bytes.size());
  std::memcpy(image.data(), bytes.data(), bytes.size());
  return image;
}

/// Written beside its name and renamed: another process sees all of it or nothing.
Status WriteImage(const fs::path& path, std::span<const std::byte> image) {
  const fs::path aside = fmt::format("{}.{}", path.string(), ::getpid());
  std::ofstream file(aside, std::ios::binary);
  file.write(reinterpret_cast<const char*>(image.data()),
             static_cast<std::streamsize>(image.size()));
  file.close();
  std::error_code failure;
  if (file) fs::rename(aside, path, failure);
  if (!file || failure) return Error(ErrorCode::kIo, "cannot write: {}", path.string());
  return Ok();
}

}  // namespace

void PreloadNvrtc() {
  (void)LoadNvrtc("");
}

Result<CudaImage> CompileCudaSource(const std::string& source, int32_t arch,
                                    const NvrtcOptions& options) {
  STRATA_TRY(const Nvrtc nvrtc, LoadNvrtc(options.library));
  STRATA_TRY(const fs::path folder, KernelCacheFolder(options.cache_dir));
  const std::string key = ContentKey(
      fmt::format("NVRTC {}\n{}\n{}", nvrtc.version, fmt::join(OptionsFor(arch), " "), source));
  const fs::path path = folder / (key + ".cubin");
  if (auto found = ReadImage(path)) return CudaImage{.cubin = *std::move(found)};
  CudaImage image;
  STRATA_TRY(image.cubin, Compile(nvrtc, source, arch));
  image.was_built = true;
  STRATA_RETURN_IF_ERROR(WriteImage(path, image.cubin));
  return image;
}

Result<CudaImage> CompileCuda(std::span<const Kernel> kernels, int32_t arch,
                              const NvrtcOptions& options) {
  return CompileCudaSource(CudaSource(kernels), arch, options);
}

}  // namespace strata
