#include "diff/history/blame.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "diff/compare/contradictions.h"
#include "diff/diff.h"
#include "diff/history/descent.h"
#include "diff/history/node_history.h"

namespace strata {

Result<Blamer> Blamer::Make(const History& history, int32_t graph) {
  STRATA_TRY(const std::vector<Descent> descents, FindDescents(history, graph));
  const auto parent_of = [&](int32_t g) { return descents[static_cast<size_t>(g)].parent; };
  const auto root_of = [&](int32_t g) {
    while (parent_of(g) >= 0)
      g = parent_of(g);
    return g;
  };
  Blamer blamer(history);
  const int32_t root = root_of(graph);
  // Parents come before their children: in order of arrival.
  for (const HistoryStep& arrival : history.steps) {
    const int32_t g = arrival.graph;
    if (blamer.StageOf(g).valid() || root_of(g) != root) continue;
    STRATA_TRY(Stage stage, MakeStage(history, g));
    const StageId id = blamer.stages_.end_id();
    if (const Descent& descent = descents[static_cast<size_t>(g)]; descent.parent >= 0) {
      stage.parent = blamer.StageOf(descent.parent);
      Stage& parent = blamer.stages_[stage.parent];
      parent.children.push_back(id);
      const auto at = std::ranges::find(parent.steps, descent.step);
      stage.parent_time = static_cast<int32_t>(at - parent.steps.begin());
      STRATA_RETURN_IF_ERROR(blamer.Cross(stage));
    }
    blamer.stages_.Add(std::move(stage));
  }
  STRATA_CHECK(blamer.StageOf(graph).valid(), "a graph without snapshots");
  return blamer;
}

/// Composes the diffs of one graph.
Result<Blamer::Stage> Blamer::MakeStage(const History& history, int32_t graph) {
  std::vector<int32_t> steps;
  std::optional<Lineage> lineage;
  LoadedGraph first, last;
  std::vector<Doubt> doubts;
  for (size_t i = 0; i < history.steps.size(); ++i) {
    const HistoryStep& step = history.steps[i];
    if (step.graph != graph) continue;
    const int32_t before =
        steps.empty() ? -1 : history.steps[static_cast<size_t>(steps.back())].after;
    steps.push_back(static_cast<int32_t>(i));
    if (before >= 0 && SameGraph(history, before, step.after)) {
      lineage->AddUnchanged();
      continue;
    }
    STRATA_TRY(const LoadedGraph now, history.load(step.after));
    if (!lineage) {
      lineage.emplace(Listing(now.graph()).size());
      first = now;
    } else {
      STRATA_TRY(const std::vector<Provenance> provenance, history.provenance(step));
      STRATA_TRY(const GraphDiff diff, Diff(last.graph(), now.graph(),
                                            {.stable_ids = history.stable_ids,
                                             .provenance = provenance,
                                             .contradictions = history.stable_ids}));
      lineage->Add(diff, provenance);
      const int32_t time = lineage->num_snapshots() - 1;
      for (const Contradiction& contradiction : diff.contradictions) {
        doubts.push_back({lineage->NodeHistoryAt(time - 1, contradiction.before), time,
                          ToString(diff, contradiction)});
      }
    }
    last = now;
  }
  const int32_t end = lineage->num_snapshots() - 1;
  if (!history.stable_ids && end > 1) {
    STRATA_TRY(const GraphDiff direct, Diff(first.graph(), last.graph()));
    const auto name = [&](EntityId id) {
      return id.valid() ? direct.after.name(id) : std::string("gone");
    };
    for (const Lineage::Contradiction& contradiction : lineage->Contradictions(direct, 0, end)) {
      doubts.push_back({lineage->NodeHistoryAt(0, contradiction.before), end,
                        fmt::format("step by step it is {} in the end, compared directly {}",
                                    name(contradiction.composed), name(contradiction.direct))});
    }
  }
  Stage stage(graph, *std::move(lineage));
  stage.steps = std::move(steps);
  stage.doubts = std::move(doubts);
  return stage;
}

/// Compares the first snapshot of a graph with its parent.
Status Blamer::Cross(Stage& stage) const {
  const Stage& parent = stages_[stage.parent];
  STRATA_TRY(const LoadedGraph before, Load(parent, stage.parent_time));
  STRATA_TRY(const LoadedGraph after, Load(stage, 0));
  STRATA_TRY(const std::vector<Provenance> provenance, history_->provenance(step(stage, 0)));
  STRATA_TRY(const GraphDiff diff,
             Diff(before.graph(), after.graph(),
                  {.stable_ids = history_->stable_ids, .provenance = provenance}));
  stage.crossings.resize(diff.after.ids().size());
  const auto history_of = [&](EntityId id) {
    return parent.lineage.NodeHistoryAt(stage.parent_time, id);
  };
  for (const Pair& pair : diff.pairs) {
    Crossing& crossing = stage.crossings[pair.after];
    crossing.before = history_of(pair.before);
    crossing.status = pair.status;
    crossing.fields = pair.fields;
    crossing.confidence = pair.confidence;
  }
  for (const Relation& relation : diff.relations) {
    for (EntityId id : relation.after) {
      Crossing& crossing = stage.crossings[id];
      for (EntityId other : relation.before) {
        if (history_of(other) == crossing.before) continue;  // the original of a copy is a pair
        crossing.relatives.push_back(history_of(other));
        crossing.relation = relation.kind;
      }
    }
  }
  return Ok();
}

Blamer::StageId Blamer::StageOf(int32_t graph) const {
  for (StageId id : IdsOf(stages_)) {
    if (stages_[id].graph == graph) return id;
  }
  return {};
}

int32_t Blamer::LastTimeAt(const Stage& stage, int32_t snapshot) const {
  const std::string& content = history_->snapshot(snapshot).content;
  int32_t last = 0;
  for (int32_t time = 0; time < stage.lineage.num_snapshots(); ++time) {
    const int32_t after = step(stage, time).after;
    if (after == snapshot) return time;
    if (history_->snapshot(after).content == content) last = time;
  }
  return last;
}

Result<Blamer::Found> Blamer::Find(int32_t snapshot, std::string_view name) const {
  const StageId its_stage = StageOf(history_->snapshot(snapshot).graph);
  STRATA_CHECK(its_stage.valid(), "a snapshot of another family");
  const int32_t time = LastTimeAt(stage(its_stage), snapshot);
  STRATA_TRY(const LoadedGraph graph, Load(stage(its_stage), time));
  const EntityId id = Listing(graph.graph()).FindName(name);
  if (!id.valid()) {
    return Error(ErrorCode::kNotFound, "no node '{}': {}: 'strata show' lists its nodes", name,
                 history_->snapshot(step(stage(its_stage), time).after).ref);
  }
  return Found{{its_stage, stage(its_stage).lineage.NodeHistoryAt(time, id)}, time};
}

Result<std::string> Blamer::NameAt(Member member, int32_t time) const {
  STRATA_TRY(const LoadedGraph graph, Load(stage(member.stage), time));
  return Listing(graph.graph()).name(stage(member.stage).lineage.At(member.history, time));
}

Result<Blame> Blamer::Follow(int32_t snapshot, std::string_view name) const {
  STRATA_TRY(const Found found, Find(snapshot, name));
  NodeHistory history(*this);
  STRATA_RETURN_IF_ERROR(history.Build(found.member, found.time));
  return std::move(history.blame());
}

Result<std::vector<Blame>> Blamer::Relatives(int32_t snapshot, std::string_view name,
                                             size_t limit) const {
  STRATA_TRY(const Found self, Find(snapshot, name));
  std::vector<Member> queue = {self.member};
  std::set<Member> known = {self.member}, covered;
  std::vector<Blame> relatives;
  for (size_t i = 0; i < queue.size() && relatives.size() < limit; ++i) {
    if (covered.contains(queue[i]))
      continue;  // in another graph: a history built before contains it
    NodeHistory history(*this);
    const int32_t last = stage(queue[i].stage).lineage.last(queue[i].history);
    STRATA_RETURN_IF_ERROR(history.Build(queue[i], i == 0 ? self.time : last));
    covered.insert(history.members().begin(), history.members().end());
    for (const Member& relative : history.relatives()) {
      if (known.insert(relative).second) queue.push_back(relative);
    }
    if (i > 0) relatives.push_back(std::move(history.blame()));
  }
  return relatives;
}

Result<std::vector<Blamer::Occurrence>> Blamer::FirstOccurrences(
    const std::vector<Occurrence>& occurrences) const {
  std::vector<Member> members;
  std::vector<std::set<Member>> covered;
  for (const auto& [snapshot, name] : occurrences) {
    STRATA_TRY(const Found found, Find(snapshot, name));
    NodeHistory history(*this);
    STRATA_RETURN_IF_ERROR(history.Build(found.member, found.time));
    members.push_back(found.member);
    covered.emplace_back(history.members().begin(), history.members().end());
    covered.back().insert(history.relatives().begin(), history.relatives().end());
  }
  std::vector<Occurrence> first;
  for (size_t i = 0; i < occurrences.size(); ++i) {
    const bool is_covered = std::ranges::any_of(covered, [&](const std::set<Member>& other) {
      const auto j = static_cast<size_t>(&other - covered.data());
      // Of two that contain each other, the one in the earlier graph.
      return j != i && other.contains(members[i]) &&
             (!covered[i].contains(members[j]) || members[j] < members[i]);
    });
    if (!is_covered) first.push_back(occurrences[i]);
  }
  return first;
}

}  // namespace strata
