#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/compile/kernel.h"
#include "passes/flex/flex_kernel.h"

namespace strata {

/// The path of `wanted`; "": of $CXX, or the first of c++, g++, clang++ on the path. Errors: there
/// is none (kNotFound).
Result<std::string> FindCompiler(const std::string& wanted = {});

/// Kernels as machine code: generated C++, built by the system's compiler into a shared object that
/// is kept on disk under the hash of all that it depends on.
class KernelLibrary {
 public:
  using Function = void (*)(void* const* arguments, int64_t begin, int64_t end,
                            const int64_t* open);

  struct Options {
    /// Where objects are kept; "": $XDG_CACHE_HOME/strata/kernels, or ~/.cache/strata/kernels.
    std::string cache_dir = {};
    /// As of FindCompiler.
    std::string compiler = {};
    /// Whether a product and a sum that formulas.cc calls strata_fma are rounded once, or twice.
    bool contracts = true;
  };

  /// Errors: no compiler (kNotFound), one that fails, a folder that cannot be written. What another
  /// process builds at the same time does no harm.
  static Result<std::unique_ptr<KernelLibrary>> Load(std::span<const Kernel> kernels,
                                                     std::span<const FlexKernel> flex_kernels,
                                                     const Options& options);
  static Result<std::unique_ptr<KernelLibrary>> Load(std::span<const Kernel> kernels,
                                                     const Options& options) {
    return Load(kernels, {}, options);
  }
  static Result<std::unique_ptr<KernelLibrary>> Load(std::span<const Kernel> kernels) {
    return Load(kernels, Options());
  }

  /// Without code, to lay out programs that are not run. Its functions are null.
  static std::unique_ptr<KernelLibrary> Unbuilt(size_t num_kernels, size_t num_flex_kernels);

  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;
  ~KernelLibrary();

  /// Valid while the library lives.
  Function function(KernelId kernel) const { return functions_[kernel]; }
  Function flex_function(FlexKernelId kernel) const { return flex_functions_[kernel]; }
  /// Whether this call built it, rather than found it.
  bool was_built() const { return was_built_; }

 private:
  KernelLibrary() = default;
  /// False: the file cannot be loaded, or lacks one of its kernels.
  bool Open(const std::string& object);

  void* handle_ = nullptr;
  IdVector<KernelId, Function> functions_;
  IdVector<FlexKernelId, Function> flex_functions_;
  bool was_built_ = false;
};

}  // namespace strata
