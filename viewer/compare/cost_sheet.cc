#include "viewer/compare/cost_sheet.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "scene/words.h"

namespace strata::viewer {
namespace {

constexpr size_t kMostRows = 200;

std::string Total(std::string_view name, double before, double after, std::string (*unit)(double)) {
  if (before == 0 && after == 0) return "";
  return fmt::format("{} {} → {} ({}). ", name, unit(before), unit(after),
                     ChangeText(after - before, unit));
}

CostSheet::List NodesOf(const Comparison& comparison) {
  CostSheet::List list{"By node", {}};
  for (SceneNodeId i : comparison.nodes()) {
    CostChange change = comparison.CostChangeOf(i);
    if (IsNone(change)) continue;
    change.what = comparison.NameOf(i);
    change.where = comparison.LabelOf(i);
    list.rows.push_back({std::move(change), i});
  }
  std::ranges::stable_sort(list.rows, std::greater<>(), [](const CostSheet::Row& row) {
    return std::tuple(std::abs(row.change.us), std::abs(row.change.bytes),
                      std::abs(row.change.peak));
  });
  list.rows.resize(std::min(list.rows.size(), kMostRows));
  return list;
}

}  // namespace

CostSheet CostSheetOf(const Comparison& comparison) {
  const CostComparison& costs = comparison.costs();
  const CostDiff& changes = costs.changes;
  CostSheet sheet;
  sheet.words =
      Total("Time of a step", changes.us_before * 1e-3, changes.us_after * 1e-3, TimeText) +
      Total("Bytes moved", changes.bytes_before, changes.bytes_after, BytesText) +
      Total("Peak", changes.peak_before, changes.peak_after, BytesText) +
      (costs.has_times ? "Bytes and peak are estimated from shapes."
                       : "Estimated from shapes: no times of both graphs were recorded.");
  const std::pair<const char*, const std::vector<CostChange>*> all[] = {
      {"By change", &changes.patterns},
      {"By module", &changes.modules},
      {"By pass", &changes.passes}};
  for (const auto& [title, list] : all) {
    CostSheet::List& added = sheet.lists.emplace_back();
    added.title = title;
    for (CostChange change : *list) {
      if (list == &changes.patterns) change.what = PastTense(change.what);
      if (added.rows.size() < kMostRows) added.rows.push_back({std::move(change), {}});
    }
  }
  sheet.lists.push_back(NodesOf(comparison));
  std::erase_if(sheet.lists, [](const CostSheet::List& list) { return list.rows.empty(); });
  return sheet;
}

}  // namespace strata::viewer
