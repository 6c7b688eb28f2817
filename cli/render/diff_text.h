#pragma once
#include <string>
#include <string_view>

#include "diff/model/graph_diff.h"
#include "diff/policy/policy.h"

namespace strata::cli {

struct DiffTextOptions {
  bool colours = false;
  const PolicyVerdict* verdict = nullptr;
  /// Also each repetition of a pattern, and the derived changes one by one.
  bool all = false;
  /// Up to the patterns: another view shows the changes.
  bool only_summary = false;
};

/// A diff for people: what violates the policy, counts, patterns, then each change with its fields;
/// causes before consequences.
std::string DiffText(const GraphDiff& diff, std::string_view before_ref, std::string_view after_ref,
                     const DiffTextOptions& options);

}  // namespace strata::cli
