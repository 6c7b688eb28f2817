#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/exec/profile.h"

namespace strata {

/// What a breakpoint knows of a node.
struct NodeSite {
  std::string_view graph, name, op, module;
};

/// A comparison of a statistic of a node's results with a number: `abs_max > 100`.
struct ValuePredicate {
  enum class Statistic : uint8_t { kMin, kMax, kMean, kAbsMax, kNan, kInf };
  enum class Comparison : uint8_t { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual };
  Statistic statistic = Statistic::kMax;
  Comparison comparison = Comparison::kGreater;
  double number = 0.0;

  bool Holds(const ValueStatistics& values) const;
};

/// Where a training stops.
struct Breakpoint {
  enum class Kind : uint8_t {
    kPass,    ///< before the pass `name`
    kStep,    ///< before training step `step`
    kNode,    ///< after the node `name`
    kOp,      ///< after each node that calls the operator `name`
    kModule,  ///< after the first of consecutive nodes of a module that `name` matches
    kAny,     ///< after each node; has a predicate
  };
  int64_t id = 0;  ///< from 1
  Kind kind = Kind::kAny;
  std::string name;
  int64_t step = 0;
  std::optional<ValuePredicate> predicate;
  std::string text;  ///< as it was given

  /// Whether it looks at nodes.
  bool IsOfNodes() const { return kind != Kind::kPass && kind != Kind::kStep; }
  /// Without the predicate. `last_module`: of the node before.
  bool Matches(const NodeSite& node, std::string_view last_module) const;
};

/// Reads `pass NAME`, `step N`, `node NAME`, `op NAME`, `module PATTERN`, `nan`, `inf`, or
/// `if STATISTIC OP NUMBER`. Those of nodes may end in `if STATISTIC OP NUMBER`. An operator is
/// `aten.mm.default`, `aten.mm` or `mm`; `*` and `?` in a pattern stand for characters of one part
/// of a module path, and modules below a matching one match too.
/// Errors: anything else, with what can be written.
Result<Breakpoint> ParseBreakpoint(std::string_view text);

}  // namespace strata
