#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace strata {

/// Nodes by module and operator: `layers.*.moe.router.gate::aten.mm.default`.
struct NodeSelector {
  std::string pattern;  ///< per part of the module path: `*` any characters, `?` one
  std::string op;       ///< with its overload

  bool Matches(std::string_view module, std::string_view node_op) const;
};

/// Selectors separated by `|`; blanks around them are skipped, and `torch.ops.` before operators.
/// Errors: not exactly one `::`, an empty side, an operator without overload, or of a library that
/// knows no such operator.
Result<std::vector<NodeSelector>> ParseSelectors(std::string_view text);

/// Whether a module path matches a pattern: both have as many parts, and each part matches.
/// `layers.*` does not match `layers.0.moe`.
bool MatchesModule(std::string_view pattern, std::string_view module);

}  // namespace strata
