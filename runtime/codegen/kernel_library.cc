#include "runtime/codegen/kernel_library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/codegen/cpp_source.h"
#include "runtime/codegen/flex_shape.h"
#include "runtime/codegen/flex_source.h"
#include "runtime/codegen/kernel_cache.h"

extern char** environ;

namespace strata {
namespace {

namespace fs = std::filesystem;

// Contraction and reassociation only where the source says so: a kernel computes exactly its
// formulas.
constexpr const char* kFlags[] = {"-std=c++17",
                                  "-O2",
                                  "-march=native",
                                  "-fPIC",
                                  "-shared",
                                  "-fopenmp-simd",
                                  "-ffp-contract=off",
                                  "-fno-math-errno",
                                  "-fno-trapping-math",
                                  "-w"};

std::string FindOnPath(std::string_view program) {
  if (program.find('/') != std::string_view::npos) {
    return ::access(std::string(program).c_str(), X_OK) == 0 ? std::string(program) : "";
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = fmt::format("{}/{}", folder, program);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

/// What -march=native means here.
std::string ProcessorOf() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("flags") || line.starts_with("Features")) return line;
  }
  return "";
}

std::string KeyOf(std::string_view source, std::string_view compiler) {
  std::string all = fmt::format("{}\n{}\n{}\n", compiler, fmt::join(kFlags, " "), ProcessorOf());
  std::error_code failure;
  const auto changed = fs::last_write_time(compiler, failure);  // a newer compiler, a new object
  if (!failure) all += fmt::format("{}\n", changed.time_since_epoch().count());
  all += source;
  return ContentKey(all);
}

/// Runs a program; what it writes to stderr goes to `log`. A Ctrl-C at the terminal does not reach
/// it: who waits for it decides what an interrupt ends.
Result<int> RunProgram(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words)
    arguments.push_back(const_cast<char*>(word.c_str()));  // NOLINT: what posix_spawn takes
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawnattr_t own_group;
  posix_spawnattr_init(&own_group);
  posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&own_group, 0);
  pid_t child = -1;
  const int failure =
      ::posix_spawn(&child, words[0].c_str(), &actions, &own_group, arguments.data(), environ);
  posix_spawnattr_destroy(&own_group);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return Error(ErrorCode::kIo, "cannot run {}", words[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

std::string FirstLineOf(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Builds beside the final name and renames: another process sees all of the object or nothing.
Status Build(const std::string& source, const std::string& compiler, const fs::path& object) {
  const std::string stem = fmt::format("{}.{}", object.string(), ::getpid());
  const std::string code = stem + ".cc", built = stem + ".so", log = stem + ".log";
  std::ofstream file(code);
  file << source;
  file.close();
  std::error_code ignored;
  if (!file) {
    fs::remove(code, ignored);  // half of it might be compiled, and kept
    return Error(ErrorCode::kIo, "cannot write: {}", code);
  }
  std::vector<std::string> words{compiler};
  words.insert(words.end(), std::begin(kFlags), std::end(kFlags));
  words.insert(words.end(), {code, "-o", built});
  STRATA_TRY(const int exit, RunProgram(words, log));
  const std::string message = FirstLineOf(log);
  fs::remove(log, ignored);
  const fs::path kept = fs::path(object).replace_extension(".cc");
  fs::rename(code, kept, ignored);
  if (exit != 0) {
    return Error("cannot build kernels: {}: {}: {}", compiler, kept.string(), message);
  }
  std::error_code failure;
  fs::rename(built, object, failure);
  if (failure)
    return Error(ErrorCode::kIo, "cannot write: {}: {}", object.string(), failure.message());
  return Ok();
}

/// A function for each kernel. Equal ones, those of layers of one shape, have one code.
std::string FlexSource(std::span<const FlexKernel> kernels) {
  std::string source = fmt::format("{}namespace {{\n{}}}\n", kFlexPreamble, kFlexArithmetic);
  std::map<std::string, size_t> known;  // by code
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::string name = fmt::format("strata_flex_{}", i);
    const auto [first, is_new] = known.emplace(FlexFunction(kernels[i], "strata_flex"), i);
    source += is_new ? FlexFunction(kernels[i], name)
                     : fmt::format(
                           "extern \"C\" void {}(void* const*, int64_t, int64_t, const "
                           "int64_t*) __attribute__((alias(\"strata_flex_{}\")));\n",
                           name, first->second);
  }
  return source;
}

}  // namespace

Result<std::string> FindCompiler(const std::string& wanted) {
  const char* from_environment = std::getenv("CXX");
  std::vector<std::string> names{"c++", "g++", "clang++"};
  if (from_environment != nullptr && *from_environment != '\0') names = {from_environment};
  if (!wanted.empty()) names = {wanted};
  for (const std::string& name : names) {
    if (std::string found = FindOnPath(name); !found.empty()) return found;
  }
  return Error(ErrorCode::kNotFound,
               "no C++ compiler: {}: install g++, or name one by the variable CXX",
               fmt::join(names, ", "));
}

Result<std::unique_ptr<KernelLibrary>> KernelLibrary::Load(std::span<const Kernel> kernels,
                                                           std::span<const FlexKernel> flex_kernels,
                                                           const Options& options) {
  STRATA_TRY(const std::string compiler, FindCompiler(options.compiler));
  STRATA_TRY(const fs::path folder, KernelCacheFolder(options.cache_dir));
  std::string source =
      fmt::format("#define STRATA_CONTRACTS {}\n{}", options.contracts ? 1 : 0, CppSource(kernels));
  if (!flex_kernels.empty()) source += FlexSource(flex_kernels);
  const fs::path object = folder / (KeyOf(source, compiler) + ".so");

  std::unique_ptr<KernelLibrary> library(new KernelLibrary());
  library->functions_.resize(kernels.size());
  library->flex_functions_.resize(flex_kernels.size());
  std::error_code ignored;
  // An object that was damaged since it was built is built again.
  library->was_built_ = !fs::exists(object, ignored) || !library->Open(object);
  if (library->was_built_) {
    STRATA_RETURN_IF_ERROR(Build(source, compiler, object));
    if (!library->Open(object)) {
      return Error(ErrorCode::kCorrupt, "cannot load kernels: {}: look at what {} made of it",
                   object.string(), compiler);
    }
  }
  return library;
}

std::unique_ptr<KernelLibrary> KernelLibrary::Unbuilt(size_t num_kernels, size_t num_flex_kernels) {
  std::unique_ptr<KernelLibrary> library(new KernelLibrary());
  library->functions_.resize(num_kernels, nullptr);
  library->flex_functions_.resize(num_flex_kernels, nullptr);
  return library;
}

bool KernelLibrary::Open(const std::string& object) {
  if (handle_ != nullptr) ::dlclose(handle_);
  handle_ = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) return false;
  const auto find = [&](const std::string& name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle_, name.c_str()));
    return function != nullptr;
  };
  for (const KernelId id : IdsOf(functions_))
    if (!find(fmt::format("strata_kernel_{}", id.index), functions_[id])) return false;
  for (const FlexKernelId id : IdsOf(flex_functions_))
    if (!find(fmt::format("strata_flex_{}", id.index), flex_functions_[id])) return false;
  return true;
}

KernelLibrary::~KernelLibrary() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

}  // namespace strata
