#include "runtime/aten/operator_library.h"

#include <cerrno>
#include <dlfcn.h>
#include <filesystem>

#include <c10/util/Exception.h>

#include "base/file.h"

namespace strata {
namespace {

/// dlopen is declared as a function that does not throw, but what a library registers does. The
/// compiler must not see which function this is.
void* (*volatile open_library)(const char*, int) = ::dlopen;

}  // namespace

Result<void*> OpenTorchLibrary(const std::string& path, std::string_view what) {
  if (path.empty()) return ReadError(path, ENOENT);
  try {
    // A name without a slash would be looked for where the system has its libraries.
    const std::string file = std::filesystem::absolute(path);
    if (void* library = open_library(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    return Error("cannot load the {}: {}: build it against the LibTorch of this program", what,
                 ::dlerror());
  } catch (const c10::Error& error) {
    const std::string_view message = error.what_without_backtrace();
    return Error("cannot load the {}: {}: {}", what, path, message.substr(0, message.find('\n')));
  }
}

Status LoadOperators(std::span<const std::string> paths) {
  for (const std::string& path : paths)
    STRATA_RETURN_IF_ERROR(OpenTorchLibrary(path, "library of operators"));
  return Ok();
}

}  // namespace strata
