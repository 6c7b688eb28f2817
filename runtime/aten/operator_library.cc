#include "runtime/aten/operator_library.h"

#include <dlfcn.h>
#include <filesystem>
#include <string_view>

#include <c10/util/Exception.h>

namespace strata {
namespace {

/// dlopen is declared as a function that does not throw, but what a library registers does. The
/// compiler must not see which function this is.
void* (*volatile open_library)(const char*, int) = ::dlopen;

Status LoadOperatorLibrary(const std::string& path) {
  try {
    // A name without a slash would be looked for where the system has its libraries.
    const std::string file = std::filesystem::absolute(path);
    if (open_library(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return Ok();
    return Error("cannot load the operators: {}: build them against the LibTorch of this program",
                 ::dlerror());
  } catch (const c10::Error& error) {
    const std::string_view message = error.what_without_backtrace();
    return Error("cannot register the operators: {}: {}", path,
                 message.substr(0, message.find('\n')));
  }
}

}  // namespace

Status LoadOperators(std::span<const std::string> paths) {
  for (const std::string& path : paths)
    STRATA_RETURN_IF_ERROR(LoadOperatorLibrary(path));
  return Ok();
}

}  // namespace strata
