#pragma once
#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace strata {

/// The position of a text within its file.
struct TextPlace {
  size_t lines = 0;    ///< before it
  size_t columns = 0;  ///< before each of its lines
};

/// `file:line:column: what`, then the source line and a caret. `offset` is a byte position in
/// `text`; `place` is the position of `text` in `file`.
Error ErrorAt(std::string_view file, std::string_view text, size_t offset, std::string_view what,
              const TextPlace& place = {});

}  // namespace strata
