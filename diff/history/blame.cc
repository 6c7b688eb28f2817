#include "diff/history/blame.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diff/contradictions.h"
#include "diff/pattern/titles.h"
#include "ir/text.h"

namespace strata {
namespace {

/// How a node that was born is related to those it is from.
std::string_view BirthWord(const LifeEvent& event) {
  if (event.origin) {
    switch (*event.origin) {
      case Origin::kCloned:
        return "copy of";
      case Origin::kReplaced:
        return "stands for";
      case Origin::kCreated:
      case Origin::kTraced:
        return "made from";
    }
  }
  switch (event.relation.value_or(RelationKind::kReplace)) {
    case RelationKind::kClone:
      return "copy of";
    case RelationKind::kMerge:
      return "merged from";
    case RelationKind::kReplace:
    case RelationKind::kBecameInput:
    case RelationKind::kBecameCompute:
      return "stands for";
  }
  return "";
}

std::string_view DeathWord(const LifeEvent& event) {
  if (!event.origin && event.relation == RelationKind::kMerge) return "merged into";
  if (!event.origin && event.relation == RelationKind::kBecameInput) return "became the input";
  return "replaced by";
}

std::string Sentence(std::string_view what, std::string_view how,
                     const std::vector<std::string>& names) {
  if (names.empty()) return std::string(what);
  return fmt::format("{}: {} {}", what, how, Enumerate(names));
}

}  // namespace

Result<Blamer> Blamer::Make(const History& history, int32_t graph) {
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
    if (before >= 0 && history.moment(before).content == history.moment(step.after).content) {
      lineage->AddUnchanged();
      continue;
    }
    STRATA_TRY(const LoadedGraph now, history.load(step.after));
    if (!lineage) {
      lineage.emplace(Listing(now.graph()).size());
      first = now;
    } else {
      STRATA_TRY(const std::vector<Provenance> births, history.births(step));
      STRATA_TRY(const GraphDiff diff, Diff(last.graph(), now.graph(),
                                            {.stable_ids = history.stable_ids,
                                             .births = births,
                                             .contradictions = history.stable_ids}));
      lineage->Add(diff, births);
      const int32_t time = lineage->num_moments() - 1;
      for (const Contradiction& contradiction : diff.contradictions) {
        doubts.push_back(
            {lineage->LifeAt(time - 1, contradiction.before), time, ToString(diff, contradiction)});
      }
    }
    last = now;
  }
  STRATA_CHECK(lineage, "a graph without moments");
  const int32_t end = lineage->num_moments() - 1;
  if (!history.stable_ids && end > 1) {
    STRATA_TRY(const GraphDiff direct, Diff(first.graph(), last.graph()));
    const auto name = [&](EntityId id) {
      return id.valid() ? direct.after.name(id) : std::string("gone");
    };
    for (const Lineage::Contradiction& contradiction : lineage->Contradictions(direct, 0, end)) {
      doubts.push_back({lineage->LifeAt(0, contradiction.before), end,
                        fmt::format("step by step it is {} in the end, compared directly {}",
                                    name(contradiction.composed), name(contradiction.direct))});
    }
  }
  Blamer blamer(history, graph, *std::move(lineage));
  blamer.steps_ = std::move(steps);
  blamer.doubts_ = std::move(doubts);
  return blamer;
}

int32_t Blamer::LastTimeAt(int32_t moment) const {
  const std::string& content = history_->moment(moment).content;
  int32_t last = 0;
  for (int32_t time = 0; time < lineage_.num_moments(); ++time) {
    const int32_t after = step(time).after;
    if (after == moment) return time;
    if (history_->moment(after).content == content) last = time;
  }
  return last;
}

Result<LifeId> Blamer::Find(int32_t time, std::string_view name) const {
  STRATA_TRY(const LoadedGraph graph, history_->load(step(time).after));
  const Listing listing(graph.graph());
  const EntityId id = listing.FindName(name);
  if (!id.valid()) {
    return Error(ErrorCode::kNotFound, "no node '{}': {}: 'strata show' lists its nodes", name,
                 history_->moment(step(time).after).ref);
  }
  return lineage_.LifeAt(time, id);
}

Result<std::string> Blamer::NameAt(LifeId life, int32_t time) const {
  STRATA_TRY(const LoadedGraph graph, history_->load(step(time).after));
  return Listing(graph.graph()).name(lineage_.At(life, time));
}

Result<Blame> Blamer::Tell(LifeId life, int32_t time) const {
  Blame blame;
  blame.graph = history_->graphs[static_cast<size_t>(graph_)];
  blame.ref = history_->moment(step(time).after).ref;
  STRATA_TRY(blame.node, NameAt(life, time));
  blame.confidence = lineage_.Confidence(life, lineage_.first(life), lineage_.last(life));
  for (const LifeEvent& event : lineage_.events(life)) {
    const HistoryStep& at = step(event.moment);
    BlameEvent told;
    told.pass_index = at.pass_index;
    told.pass = at.pass;
    told.ref = at.ref;
    told.fields = event.fields;
    const bool deleted = event.kind == LifeEvent::Kind::kDeleted;
    STRATA_TRY(told.node, NameAt(life, deleted ? event.moment - 1 : event.moment));
    std::vector<std::string> names;
    for (LifeId relative : event.relatives) {
      const int32_t when = deleted ? event.moment : event.moment - 1;
      // A new node may be made from another new node.
      const bool lives = lineage_.At(relative, when).valid();
      STRATA_TRY(std::string name, NameAt(relative, lives ? when : event.moment));
      names.push_back(std::move(name));
    }
    switch (event.kind) {
      case LifeEvent::Kind::kGiven:
        told.what = "given";
        break;
      case LifeEvent::Kind::kBorn:
        told.what = Sentence("born", BirthWord(event), names);
        told.from = std::move(names);
        break;
      case LifeEvent::Kind::kDeleted:
        told.what = Sentence("deleted", DeathWord(event), names);
        told.to = std::move(names);
        break;
      case LifeEvent::Kind::kKept: {
        std::vector<std::string> parts;
        if (event.status.renamed) {
          STRATA_TRY(const std::string before, NameAt(life, event.moment - 1));
          parts.push_back(fmt::format("renamed: {} → {}", before, told.node));
        }
        if (event.status.moved) parts.emplace_back("moved");
        PairStatus rest = event.status;
        rest.moved = false;
        const std::string fields = Titles::OfPair(rest, event.fields);
        if (event.status.changed) parts.push_back("changed " + fields);
        if (event.status.derived) parts.push_back("follows a change: " + fields);
        told.what = fmt::format("{}", fmt::join(parts, ", "));
        break;
      }
    }
    blame.events.push_back(std::move(told));
  }
  for (const Doubt& doubt : doubts_) {
    if (doubt.life != life) continue;
    blame.contradictions.push_back(
        {history_->stable_ids ? step(doubt.time).pass_index : -1, doubt.what});
  }
  return blame;
}

Result<Blame> Blamer::Follow(int32_t moment, std::string_view name) const {
  const int32_t time = LastTimeAt(moment);
  STRATA_TRY(const LifeId life, Find(time, name));
  return Tell(life, time);
}

Result<std::vector<Blame>> Blamer::Relatives(int32_t moment, std::string_view name,
                                             size_t limit) const {
  STRATA_TRY(const LifeId self, Find(LastTimeAt(moment), name));
  std::vector<LifeId> queue = {self};
  std::set<LifeId> known = {self};
  std::vector<Blame> relatives;
  for (size_t i = 0; i < queue.size(); ++i) {
    if (i > 0) {
      STRATA_TRY(Blame blame, Tell(queue[i], lineage_.last(queue[i])));
      relatives.push_back(std::move(blame));
    }
    for (const LifeEvent& event : lineage_.events(queue[i])) {
      for (LifeId relative : event.relatives) {
        if (queue.size() <= limit && known.insert(relative).second) queue.push_back(relative);
      }
    }
  }
  return relatives;
}

}  // namespace strata
