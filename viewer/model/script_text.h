#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace strata::viewer {

/// A line of a script: a verb and its words. docs/viewer.md describes the language.
struct ScriptLine {
  int32_t number = 0;  ///< in the file, from 1
  bool now = false;    ///< it does not wait until what came before has had its effect
  std::string verb;
  std::vector<std::string> words;
};

/// `key A B` gives a line for each key. Errors read `FILE:LINE: what`: an unknown verb, a wrong
/// number of words, an open quote.
Result<std::vector<ScriptLine>> ParseScript(std::string_view text, const std::string& file);

}  // namespace strata::viewer
