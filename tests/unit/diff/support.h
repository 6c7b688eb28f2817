#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "diff/diff.h"
#include "tests/support/graphs.h"

namespace strata::testing {

/// Two graphs from native text (without the line `graph g`) and their diff.
struct DiffCase {
  DiffCase(std::string_view before_text, std::string_view after_text, DiffOptions options = {})
      : before(ParseBody(before_text)),
        after(ParseBody(after_text)),
        diff(OrDie(Diff(before->graph({0}), after->graph({0}), options))) {}

  std::unique_ptr<Module> before, after;
  GraphDiff diff;
};

/// Everything that a diff says, one line each: pairs that are not the same, deleted and inserted
/// nodes, relations.
///
///     mm -> mm_1: renamed+changed
///       args[1]: 2 -> 3
///     - relu
///     + gelu
///     replace relu -> gelu
std::string Describe(const GraphDiff& diff);

/// `Describe` of the diff of two texts.
std::string DescribeTexts(std::string_view before, std::string_view after,
                          const DiffOptions& options = {});

/// The after name of a before node; "-": deleted.
std::string PartnerOf(const GraphDiff& diff, std::string_view before);

}  // namespace strata::testing
