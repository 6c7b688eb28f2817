#include "tlparse-export/report/causes.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "diff/graph/module_path.h"
#include "diff/pattern/titles.h"
#include "ir/module.h"

namespace strata {
namespace {

constexpr size_t kCauses = 4;

ChangeCounts CountsOf(const GraphDiff& diff, const Hunk& hunk) {
  ChangeCounts counts;
  counts.inserted = static_cast<int64_t>(hunk.inserted.size());
  counts.deleted = static_cast<int64_t>(hunk.deleted.size());
  for (PairId pair : hunk.pairs) {
    const PairStatus& status = diff.pairs[pair].status;
    counts.changed += status.changed ? 1 : 0;
    counts.moved += status.moved && !status.changed ? 1 : 0;
  }
  return counts;
}

}  // namespace

std::vector<ReportCause> CausesOf(const GraphDiff& diff) {
  const Titles titles(diff);
  std::vector<ReportCause> causes;
  const auto add = [&](const Hunk& hunk, ReportCause& cause) {
    const ChangeCounts counts = CountsOf(diff, hunk);
    cause.counts.inserted += counts.inserted;
    cause.counts.deleted += counts.deleted;
    cause.counts.changed += counts.changed;
    cause.counts.moved += counts.moved;
    cause.nodes +=
        static_cast<int64_t>(hunk.pairs.size() + hunk.inserted.size() + hunk.deleted.size());
  };
  for (const Pattern& pattern : diff.patterns) {
    ReportCause& cause = causes.emplace_back();
    cause.title = pattern.title;
    cause.where = pattern.where;
    for (const Deviation& deviation : pattern.deviations)
      cause.except.emplace_back(deviation.where, deviation.what);
    cause.places = static_cast<int64_t>(pattern.hunks.size());
    for (HunkId hunk : pattern.hunks)
      add(diff.hunks[hunk], cause);
  }
  for (const Hunk& hunk : diff.hunks) {
    if (hunk.pattern.valid()) continue;
    ReportCause& cause = causes.emplace_back();
    cause.title = titles.OfHunk(hunk);
    cause.where = PlaceOfHunk(diff, hunk);
    add(hunk, cause);
  }
  std::ranges::stable_sort(causes, std::ranges::greater(), &ReportCause::nodes);
  if (causes.size() > kCauses) causes.resize(kCauses);
  return causes;
}

std::string PlaceOfHunk(const GraphDiff& diff, const Hunk& hunk) {
  std::optional<std::string_view> place;
  const auto add = [&](const Listing& listing, EntityId id) {
    const Graph& graph = listing.graph(id);
    const std::string_view module = graph.module().str(graph.node(listing[id].node).module);
    if (!module.empty()) place = place ? CommonModule(*place, module) : module;
  };
  for (PairId pair : hunk.pairs)
    add(diff.before, diff.pairs[pair].before);
  for (EntityId id : hunk.deleted)
    add(diff.before, id);
  for (EntityId id : hunk.inserted)
    add(diff.after, id);
  return std::string(place.value_or(""));
}

}  // namespace strata
