#pragma once
#include <cstdint>
#include <string_view>

namespace strata {

/// Line `line` (from 1) of the source file of a traced program, `runtime/models/llama3.cc`, at
/// build time, without the blanks around it; empty for other files.
std::string_view SourceLine(std::string_view file, uint32_t line);

}  // namespace strata
