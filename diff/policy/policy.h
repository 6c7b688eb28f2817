#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "diff/model/graph_diff.h"
#include "diff/policy/name_pattern.h"

namespace strata {

/// What a change may be, read from a TOML file; docs/policy.md specifies the format.
struct Policy {
  /// The changes that a rule applies to: those that fulfil each condition that is given.
  struct Rule {
    std::vector<std::string> statuses;  ///< of kChangeWords
    std::vector<NamePattern> targets, modules, fields, patterns, nodes;
    std::vector<std::string> kinds;  ///< "input", "constant", "compute", "output"
    std::string why;                 ///< for people
    std::string where;               ///< `policy.toml:12`
  };
  struct Limit {
    std::string of;  ///< of kLimitWords
    int64_t most;
    std::string where;
  };
  struct Invariant {
    std::string name;  ///< of kInvariantWords
    std::string where;
  };

  std::vector<Rule> allow;   ///< when there are any, each change needs one that covers it
  std::vector<Rule> forbid;  ///< a change that one of them applies to is a violation
  std::vector<Limit> limits;
  std::vector<Invariant> invariants;
  std::string file;
};

/// Something that a policy does not let pass.
struct Violation {
  std::string what;                       ///< "inserted all_gather_3 (_c10d_functional.…)"
  std::string rule;                       ///< "forbidden by policy.toml:12: no new collectives"
  std::optional<EntityId> before, after;  ///< the node, if it is about one
};

/// What became of a policy.
struct PolicyVerdict {
  std::string file;
  std::vector<Violation> violations;

  bool allowed() const { return violations.empty(); }
};

inline constexpr std::array<std::string_view, 11> kChangeWords = {
    "renamed",  "moved",  "changed", "derived",      "inserted",      "deleted",
    "replaced", "cloned", "merged",  "became_input", "became_compute"};
inline constexpr std::array<std::string_view, 5> kInvariantWords = {
    "same_inputs", "same_outputs", "same_collectives", "same_mutations", "no_new_targets"};

/// Errors: not TOML, unknown keys and values (with the valid ones), invalid patterns.
Result<Policy> ParsePolicy(std::string_view text, std::string_view file);

/// Everything that `policy` does not let pass: nodes in the order of the graph, then limits and
/// invariants. A pair that is the same is never a change; one that is only renamed, only for rules
/// that name `renamed`.
PolicyVerdict CheckPolicy(const Policy& policy, const GraphDiff& diff);

}  // namespace strata
