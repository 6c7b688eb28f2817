#pragma once
#include <string_view>

namespace strata {

/// Whether `module` is `path` or lies below it: `layers.0.attention` is within `layers.0`.
inline bool IsWithin(std::string_view module, std::string_view path) {
  return module.starts_with(path) && (module.size() == path.size() || module[path.size()] == '.');
}

}  // namespace strata
