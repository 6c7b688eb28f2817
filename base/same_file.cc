#include "base/same_file.h"

#include <filesystem>
#include <system_error>

namespace strata {
namespace {

namespace fs = std::filesystem;

/// Standard output, and what exists and is not a regular file.
bool IsNeverReplaced(const std::string& path) {
  std::error_code error;
  return path == "-" || (fs::exists(path, error) && !fs::is_regular_file(path, error));
}

bool IsInFolder(const std::string& path, const std::string& folder) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || !fs::is_directory(folder, error)) return false;
  const fs::path parent = fs::weakly_canonical(path, error).parent_path();
  return !error && fs::equivalent(parent, folder, error);
}

}  // namespace

bool IsSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path first = fs::weakly_canonical(fs::absolute(a, error), error);
  return !error && first == fs::weakly_canonical(fs::absolute(b, error), error) && !error;
}

Status CheckOutputs(std::span<const NamedPath> outputs, std::span<const NamedPath> inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NamedPath& output = outputs[i];
    if (output.path.empty() || IsNeverReplaced(output.path)) continue;
    for (const NamedPath& input : inputs) {
      if (input.path.empty() || input.path == "-") continue;
      if (!IsSameFile(output.path, input.path) && !IsInFolder(output.path, input.path)) continue;
      return Error("output would replace an input: {}: {} names a file of {}; give another name",
                   output.path, output.name, input.name);
    }
    for (const NamedPath& other : outputs.subspan(i + 1)) {
      if (!IsSameFile(output.path, other.path)) continue;
      return Error("two outputs have one name: {}: {} and {}; give another name", output.path,
                   output.name, other.name);
    }
  }
  return Ok();
}

}  // namespace strata
