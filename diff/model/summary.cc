#include "diff/model/summary.h"

#include <fmt/format.h>

namespace strata {

std::string SummaryPart::ToString() const {
  return count > 0 ? fmt::format("{} {}", count, what) : std::string(what);
}

std::vector<SummaryPart> SummaryParts(const DiffSummary& summary) {
  std::vector<SummaryPart> parts;
  const auto add = [&](int32_t count, std::string_view what) {
    if (count > 0) parts.push_back({count, what});
  };
  add(summary.changed, "changed");
  add(summary.moved, "moved");
  add(summary.inserted, "inserted");
  add(summary.deleted, "deleted");
  add(summary.derived, "derived");
  if (parts.empty()) parts.push_back({0, "no differences"});
  add(summary.renamed, "renamed");
  add(summary.same, "same");
  return parts;
}

}  // namespace strata
