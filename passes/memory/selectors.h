#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace strata {

/// Nodes by module and operator, `layers.*.moe.router.gate::aten.mm.default`, and perhaps which of
/// them in each module: `layers.*.attention::aten.mm.default#2`.
struct NodeSelector {
  std::string pattern;  ///< per part of the module path: `*` any characters, `?` one
  std::string op;       ///< with its overload
  /// Which of the nodes of one module and operator, 1 for the first in program order; 0: all.
  int64_t occurrence = 0;

  bool Matches(std::string_view module, std::string_view node_op, int64_t node_occurrence) const;
};

/// Numbers nodes of one module and operator in program order: 1, 2, …
class OccurrenceCounter {
 public:
  /// The number of the next node. REQUIRES: the texts outlive this.
  int64_t Count(std::string_view module, std::string_view op) { return ++counts_[{module, op}]; }

 private:
  std::map<std::pair<std::string_view, std::string_view>, int64_t> counts_;
};

/// Selectors separated by `|`; blanks around them are skipped, and `torch.ops.` before operators.
/// Errors: not exactly one `::`, an empty side, an operator without overload, or of a library that
/// knows no such operator; after `#` no whole number from 1.
Result<std::vector<NodeSelector>> ParseSelectors(std::string_view text);

/// Whether a module path matches a pattern: both have as many parts, and each part matches.
/// `layers.*` does not match `layers.0.moe`.
bool MatchesModule(std::string_view pattern, std::string_view module);

}  // namespace strata
