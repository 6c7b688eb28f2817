#pragma once
#include <cstdint>
#include <string_view>

namespace strata {

/// A source file as the compiler names it, `../../runtime/models/llama3.cc` or an absolute path, by
/// its path in the checkout: the same on every machine. Files outside of the checkout stay.
std::string_view PathInCheckout(std::string_view file);

/// Line `line` (from 1) of the source file of a traced program, `runtime/models/llama3.cc`, at
/// build time, without the blanks around it; empty for other files.
std::string_view SourceLine(std::string_view file, uint32_t line);

}  // namespace strata
