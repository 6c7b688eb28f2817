#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// Words of docs/control.md that may come after `text`, the beginning of a command.
std::vector<std::string> ControlWordsAfter(std::string_view text);

}  // namespace strata
