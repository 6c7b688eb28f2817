#include "diff/history/blame_story.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "diff/pattern/titles.h"

namespace strata {
namespace {

/// How a node that was born is related to those it is from.
std::string_view BirthWord(const std::optional<Origin>& origin,
                           const std::optional<RelationKind>& relation) {
  if (origin) {
    switch (*origin) {
      case Origin::kCloned:
        return "copy of";
      case Origin::kReplaced:
        return "stands for";
      case Origin::kCreated:
      case Origin::kTraced:
        return "made from";
    }
  }
  switch (relation.value_or(RelationKind::kReplace)) {
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

std::string_view DeathWord(const std::optional<Origin>& origin,
                           const std::optional<RelationKind>& relation) {
  if (!origin && relation == RelationKind::kMerge) return "merged into";
  if (!origin && relation == RelationKind::kBecameInput) return "became the input";
  return "replaced by";
}

std::string Sentence(std::string_view what, std::string_view how,
                     const std::vector<std::string>& names) {
  if (names.empty()) return std::string(what);
  return fmt::format("{}: {} {}", what, how, Enumerate(names));
}

/// What differs about a node that lived on, in parts of a sentence.
std::vector<std::string> Differences(PairStatus status, const std::vector<FieldDiff>& fields,
                                     std::string_view before, std::string_view after) {
  std::vector<std::string> parts;
  if (status.renamed) parts.push_back(fmt::format("renamed: {} → {}", before, after));
  if (status.moved) parts.emplace_back("moved");
  status.moved = false;
  const std::string what = Titles::OfPair(status, fields);
  if (status.changed) parts.push_back("changed " + what);
  if (status.derived) parts.push_back("follows a change: " + what);
  return parts;
}

}  // namespace

Status Blamer::Story::Tell(Member member, int32_t time) {
  const Stage& own = stage(member.stage);
  blame_.graph = blamer_.GraphName(own);
  blame_.ref = blamer_.history_->moment(blamer_.step(own, time).after).ref;
  STRATA_TRY(blame_.node, blamer_.NameAt(member, time));
  blame_.confidence = own.lineage.Confidence(member.life, 0, std::numeric_limits<int32_t>::max());
  STRATA_RETURN_IF_ERROR(AddLife(member, std::numeric_limits<int32_t>::max()));
  for (Member at = member; const Crossing* crossing = CrossingOf(at);) {
    STRATA_RETURN_IF_ERROR(AddCrossing(at, *crossing));
    if (!crossing->before.valid()) break;
    const int32_t until = stage(at.stage).parent_time;
    at = {stage(at.stage).parent, crossing->before};
    STRATA_RETURN_IF_ERROR(AddLife(at, until));
    blame_.confidence *=
        crossing->confidence * stage(at.stage).lineage.Confidence(at.life, 0, until);
  }
  STRATA_TRY(const double onwards, AddChildren(member));
  blame_.confidence *= onwards;
  std::ranges::stable_sort(events_, {}, [](const auto& event) { return event.first; });
  for (auto& [step, event] : events_)
    blame_.events.push_back(std::move(event));
  return Ok();
}

const Blamer::Crossing* Blamer::Story::CrossingOf(Member member) const {
  const Stage& own = stage(member.stage);
  if (own.parent < 0 || own.lineage.first(member.life) > 0) return nullptr;
  return &own.crossings[static_cast<size_t>(own.lineage.At(member.life, 0).index)];
}

Status Blamer::Story::AddLife(Member member, int32_t until) {
  members_.push_back(member);
  AddDoubts(member);
  for (const LifeEvent& event : stage(member.stage).lineage.events(member.life)) {
    if (event.moment > until) break;
    // That it came with its graph is told by the crossing.
    if (event.kind == LifeEvent::Kind::kGiven && CrossingOf(member) != nullptr) continue;
    STRATA_RETURN_IF_ERROR(AddLifeEvent(member, event));
  }
  return Ok();
}

Status Blamer::Story::AddLifeEvent(Member member, const LifeEvent& event) {
  BlameEvent& told = Add(member.stage, event.moment);
  told.fields = event.fields;
  const bool deleted = event.kind == LifeEvent::Kind::kDeleted;
  STRATA_TRY(told.node, blamer_.NameAt(member, deleted ? event.moment - 1 : event.moment));
  STRATA_TRY(std::vector<std::string> names,
             NamesOf(member.stage, event.relatives, deleted ? event.moment : event.moment - 1));
  switch (event.kind) {
    case LifeEvent::Kind::kGiven:
      told.what = "given";
      break;
    case LifeEvent::Kind::kBorn:
      told.what = Sentence("born", BirthWord(event.origin, event.relation), names);
      told.from = std::move(names);
      break;
    case LifeEvent::Kind::kDeleted:
      told.what = Sentence("deleted", DeathWord(event.origin, event.relation), names);
      told.to = std::move(names);
      break;
    case LifeEvent::Kind::kKept: {
      STRATA_TRY(const std::string before, blamer_.NameAt(member, event.moment - 1));
      told.what = fmt::format(
          "{}", fmt::join(Differences(event.status, event.fields, before, told.node), ", "));
      break;
    }
  }
  return Ok();
}

Status Blamer::Story::AddCrossing(Member member, const Crossing& crossing) {
  const Stage& own = stage(member.stage);
  const std::string& parent = blamer_.GraphName(stage(own.parent));
  BlameEvent& told = Add(member.stage, 0);
  STRATA_TRY(told.node, blamer_.NameAt(member, 0));
  if (!crossing.before.valid()) {
    STRATA_TRY(told.from, NamesOf(own.parent, crossing.relatives, own.parent_time));
    told.what = Sentence("born", BirthWord(std::nullopt, crossing.relation), told.from);
    if (told.from.empty()) return Ok();
    told.what += fmt::format(" of '{}'", parent);
    told.from_graph = parent;
    return Ok();
  }
  STRATA_TRY(const std::string before,
             blamer_.NameAt({own.parent, crossing.before}, own.parent_time));
  std::vector<std::string> parts = Differences(crossing.status, crossing.fields, before, told.node);
  parts.insert(parts.begin(), fmt::format("carried over from '{}'", parent));
  told.what = fmt::format("{}", fmt::join(parts, ", "));
  told.fields = crossing.fields;
  told.from_graph = parent;
  return Ok();
}

Result<double> Blamer::Story::AddChildren(Member member) {
  const Stage& own = stage(member.stage);
  double least = 1;
  bool lives_on = own.children.empty();
  int32_t last_child = -1;
  for (int32_t child : own.children) {
    const Stage& next = stage(child);
    if (!own.lineage.At(member.life, next.parent_time).valid()) continue;
    last_child = child;
    const auto found = std::ranges::find(next.crossings, member.life, &Crossing::before);
    if (found == next.crossings.end()) {
      STRATA_TRY(const bool has_heirs, AddHeirs(member, child));
      lives_on |= has_heirs;
      continue;
    }
    lives_on = true;
    const EntityId entity{static_cast<int32_t>(found - next.crossings.begin())};
    const Member same{child, next.lineage.LifeAt(0, entity)};
    STRATA_RETURN_IF_ERROR(AddCrossing(same, *found));
    STRATA_RETURN_IF_ERROR(AddHeirs(member, child));
    STRATA_RETURN_IF_ERROR(AddLife(same, std::numeric_limits<int32_t>::max()));
    STRATA_TRY(const double onwards, AddChildren(same));
    least = std::min(
        least, found->confidence * onwards *
                   next.lineage.Confidence(same.life, 0, std::numeric_limits<int32_t>::max()));
  }
  // Graphs that are cut out of another one leave out what none of them needs.
  const bool is_last =
      last_child >= 0 && stage(last_child).parent_time + 1 == own.lineage.num_moments();
  if (lives_on || !is_last) return least;
  BlameEvent& told = Add(last_child, 0);
  STRATA_TRY(told.node, blamer_.NameAt(member, stage(last_child).parent_time));
  std::vector<std::string> graphs;
  for (int32_t child : own.children)
    graphs.push_back(fmt::format("'{}'", blamer_.GraphName(stage(child))));
  told.what = fmt::format("deleted: not in {}", Enumerate(graphs));
  told.from_graph = blamer_.GraphName(own);
  return least;
}

Result<bool> Blamer::Story::AddHeirs(Member member, int32_t child) {
  const Stage& next = stage(child);
  std::vector<LifeId> heirs;
  std::optional<RelationKind> relation;
  for (size_t i = 0; i < next.crossings.size(); ++i) {
    if (std::ranges::find(next.crossings[i].relatives, member.life) ==
        next.crossings[i].relatives.end()) {
      continue;
    }
    heirs.push_back(next.lineage.LifeAt(0, EntityId{static_cast<int32_t>(i)}));
    relation = next.crossings[i].relation;
  }
  if (heirs.empty()) return false;
  BlameEvent& told = Add(child, 0);
  told.from_graph = blamer_.GraphName(stage(member.stage));
  STRATA_TRY(told.node, blamer_.NameAt(member, next.parent_time));
  STRATA_TRY(told.to, NamesOf(child, heirs, 0));
  const std::string_view how =
      relation == RelationKind::kClone ? "copied to" : DeathWord(std::nullopt, relation);
  told.what = fmt::format("{} {}", how, Enumerate(told.to));
  return true;
}

void Blamer::Story::AddDoubts(Member member) {
  const Stage& own = stage(member.stage);
  for (const Doubt& doubt : own.doubts) {
    if (doubt.life != member.life) continue;
    const bool of_pass = blamer_.history_->stable_ids;
    blame_.contradictions.push_back(
        {of_pass ? blamer_.step(own, doubt.time).pass_index : -1, doubt.what});
  }
}

BlameEvent& Blamer::Story::Add(int32_t stage_index, int32_t time) {
  const Stage& own = stage(stage_index);
  const HistoryStep& at = blamer_.step(own, time);
  BlameEvent& told =
      events_.emplace_back(own.steps[static_cast<size_t>(time)], BlameEvent{}).second;
  told.pass_index = at.pass_index;
  told.pass = at.pass;
  told.graph = blamer_.GraphName(own);
  told.ref = at.ref;
  return told;
}

Result<std::vector<std::string>> Blamer::Story::NamesOf(int32_t stage_index,
                                                        const std::vector<LifeId>& lives,
                                                        int32_t time) {
  std::vector<std::string> names;
  for (LifeId life : lives) {
    relatives_.push_back({stage_index, life});
    // A new node may be made from another new node.
    const Lineage& lineage = stage(stage_index).lineage;
    const bool is_there = lineage.At(life, time).valid();
    STRATA_TRY(std::string name,
               blamer_.NameAt({stage_index, life}, is_there ? time : lineage.first(life)));
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace strata
