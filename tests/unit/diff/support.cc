#include "tests/unit/diff/support.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace strata::testing {

std::string Describe(const GraphDiff& diff) {
  std::string text = "\n";
  for (const Pair& pair : diff.pairs) {
    if (pair.status.same() && pair.fields.empty()) continue;
    text += fmt::format("{} -> {}: {}\n", diff.before.name(pair.before),
                        diff.after.name(pair.after), ToString(pair.status));
    for (const FieldDiff& field : pair.fields) {
      text += fmt::format("  {}: {} -> {}{}\n", field.path, field.before.value_or("null"),
                          field.after.value_or("null"), field.derived ? " (derived)" : "");
    }
  }
  for (EntityId id : diff.deleted)
    text += fmt::format("- {}\n", diff.before.name(id));
  for (EntityId id : diff.inserted)
    text += fmt::format("+ {}\n", diff.after.name(id));
  const auto names = [](const Listing& listing, const std::vector<EntityId>& ids) {
    std::vector<std::string> result;
    for (EntityId id : ids)
      result.push_back(listing.name(id));
    return result;
  };
  for (const Relation& relation : diff.relations) {
    text += fmt::format("{} {} -> {}\n", ToString(relation.kind),
                        fmt::join(names(diff.before, relation.before), ", "),
                        fmt::join(names(diff.after, relation.after), ", "));
  }
  return text;
}

std::string DescribeTexts(std::string_view before, std::string_view after,
                          const DiffOptions& options) {
  return Describe(DiffCase(before, after, options).diff);
}

std::string PartnerOf(const GraphDiff& diff, std::string_view before) {
  const PairId pair = diff.pair_of_before[diff.before.FindName(before)];
  return !pair.valid() ? "-" : diff.after.name(diff.pairs[pair].after);
}

}  // namespace strata::testing
