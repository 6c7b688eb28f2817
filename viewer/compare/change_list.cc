#include "viewer/compare/change_list.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/unicode.h"
#include "diff/pattern/titles.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

constexpr const char* kNowhere = "–";

SceneCounts CountsOf(const Comparison& c, const std::vector<SceneNodeId>& nodes) {
  SceneCounts counts;
  for (SceneNodeId node : nodes) {
    ++counts.nodes;
    const SceneStatus status = c.StatusOf(node);
    counts.added += status == SceneStatus::kAdded ? 1 : 0;
    counts.removed += status == SceneStatus::kRemoved ? 1 : 0;
    counts.changed += status == SceneStatus::kChanged ? 1 : 0;
    counts.moved += status == SceneStatus::kMoved ? 1 : 0;
    counts.derived += status == SceneStatus::kDerived ? 1 : 0;
  }
  return counts;
}

ChangePlace PlaceOf(const Comparison& c, const Hunk& hunk) {
  ChangePlace place;
  place.nodes = c.NodesOf(hunk);
  if (!place.nodes.empty()) place.where = c.ModuleOf(place.nodes.front());
  if (place.where.empty()) place.where = kNowhere;
  return place;
}

/// `first`: the first of the equal places.
std::string WhereOf(const Pattern& pattern, const ChangePlace& first) {
  std::string words = Plural(static_cast<int64_t>(pattern.hunks.size()), "equal place");
  // A pattern without a path of its own is named by its first place.
  if (!pattern.where.empty() && pattern.where != words) {
    words += ": " + Visible(pattern.where);
  } else if (first.where != kNowhere) {
    words += fmt::format(": {} and more", first.where);
  }
  for (size_t i = 0; i < pattern.deviations.size(); ++i)
    words += (i == 0 ? " except " : ", ") + Visible(pattern.deviations[i].where);
  return words;
}

}  // namespace

ChangeList MakeChangeList(const Comparison& c) {
  ChangeList list;
  const GraphDiff& diff = c.diff();
  for (const Pattern& pattern : diff.patterns.values()) {
    Change change;
    change.title = PastTense(pattern.title);
    for (const Deviation& deviation : pattern.deviations) {
      ChangePlace place;
      place.where = Visible(deviation.where);
      place.deviates = true;
      place.what = PastTense(deviation.what);
      for (HunkId hunk : deviation.hunks) {
        const std::vector<SceneNodeId> nodes = c.NodesOf(diff.hunks[hunk]);
        place.nodes.insert(place.nodes.end(), nodes.begin(), nodes.end());
      }
      change.places.push_back(std::move(place));
    }
    for (HunkId hunk : pattern.hunks) {
      change.places.push_back(PlaceOf(c, diff.hunks[hunk]));
      change.counts += CountsOf(c, change.places.back().nodes);
    }
    change.where = WhereOf(pattern, change.places[pattern.deviations.size()]);
    list.patterns.push_back(std::move(change));
  }
  const Titles titles(diff);
  for (const Hunk& hunk : diff.hunks.values()) {
    if (hunk.pattern.valid()) continue;
    Change change;
    change.title = PastTense(titles.OfHunk(hunk));
    change.places.push_back(PlaceOf(c, hunk));
    change.counts = CountsOf(c, change.places.back().nodes);
    change.where =
        change.places.back().where == kNowhere ? "without module" : change.places.back().where;
    list.singles.push_back(std::move(change));
  }
  std::ranges::stable_sort(list.singles, std::greater<>(),
                           [](const Change& change) { return change.counts.nodes; });
  return list;
}

}  // namespace strata::viewer
