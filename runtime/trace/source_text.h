#pragma once
#include <cstdint>
#include <string_view>

namespace strata {

/// Line `line` (from 1) of one of our programs' source files, `runtime/models/llama3.cc`, as it was
/// when this was built, without the blanks around it; empty for files that are no programs.
std::string_view SourceLine(std::string_view file, uint32_t line);

}  // namespace strata
