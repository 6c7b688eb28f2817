#include "diff/history/node_history.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "diff/graph/arguments.h"
#include "diff/pattern/titles.h"

namespace strata {
namespace {

/// `model.py:12 in forward: y = self.wq(x)` of a node; "" where its source is not known.
std::string SourceOf(const Graph& graph, std::string_view name) {
  const Listing listing(graph);
  const EntityId id = listing.FindName(name);
  if (!id.valid()) return "";
  const Graph& owner = listing.graph(id);
  const Node& node = owner.node(listing[id].node);
  if (!node.loc.valid()) return "";
  const Module& module = owner.module();
  const SourceLoc& loc = module.loc(node.loc);
  const auto text = [&](StrId part) {
    return part.valid() ? module.str(part) : std::string_view();
  };
  const std::string_view file = text(loc.file);
  std::string source = fmt::format("{}:{}", file.substr(file.rfind('/') + 1), loc.line);
  if (!text(loc.function).empty()) source += fmt::format(" in {}", text(loc.function));
  if (!text(loc.code).empty()) source += fmt::format(": {}", OneLine(text(loc.code), 120));
  return source;
}

/// `reads mm_3, read by add_4`: where in its graph a node stands that has no ancestor.
std::string Surroundings(const Graph& graph, std::string_view name) {
  const Listing listing(graph);
  const EntityId id = listing.FindName(name);
  if (!id.valid()) return "";
  const auto add_once = [&](std::vector<std::string>& names, EntityId other) {
    std::string text = other.valid() ? listing.name(other) : "";
    if (!text.empty() && std::ranges::find(names, text) == names.end())
      names.push_back(std::move(text));
  };
  std::vector<std::string> read, readers;
  for (EntityId operand : OperandsOf(listing, id))
    add_once(read, operand);
  for (EntityId user : listing.ids()) {
    if (std::ranges::count(OperandsOf(listing, user), id) > 0) add_once(readers, user);
  }
  std::vector<std::string> parts;
  if (!read.empty()) parts.push_back(fmt::format("reads {}", Enumerate(read)));
  if (!readers.empty()) parts.push_back(fmt::format("read by {}", Enumerate(readers)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// How a node that was born is related to those it is from.
std::string_view CreationPhrase(const std::optional<Origin>& origin,
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

std::string_view DeletionPhrase(const std::optional<Origin>& origin,
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
std::vector<std::string> Differences(PairStatus status, const FieldDiffs& fields,
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

Status Blamer::NodeHistory::Build(Member member, int32_t time) {
  const Stage& own = stage(member.stage);
  blame_.graph = blamer_.GraphName(own);
  blame_.ref = blamer_.history_->snapshot(blamer_.step(own, time).after).ref;
  STRATA_TRY(blame_.node, blamer_.NameAt(member, time));
  STRATA_TRY(const LoadedGraph graph, blamer_.Load(own, time));
  blame_.source = SourceOf(graph.graph(), blame_.node);
  blame_.confidence =
      own.lineage.Confidence(member.history, 0, std::numeric_limits<int32_t>::max());
  STRATA_RETURN_IF_ERROR(AddNodeEvents(member, std::numeric_limits<int32_t>::max()));
  for (Member at = member; const Crossing* crossing = CrossingOf(at);) {
    STRATA_RETURN_IF_ERROR(AddCrossing(at, *crossing));
    if (!crossing->before.valid()) break;
    const int32_t until = stage(at.stage).parent_time;
    at = {stage(at.stage).parent, crossing->before};
    STRATA_RETURN_IF_ERROR(AddNodeEvents(at, until));
    blame_.confidence *=
        crossing->confidence * stage(at.stage).lineage.Confidence(at.history, 0, until);
  }
  STRATA_TRY(const double onwards, AddChildren(member));
  blame_.confidence *= onwards;
  std::ranges::stable_sort(events_, {}, [](const auto& event) { return event.first; });
  for (auto& [step, event] : events_)
    blame_.events.push_back(std::move(event));
  return Ok();
}

const Blamer::Crossing* Blamer::NodeHistory::CrossingOf(Member member) const {
  const Stage& own = stage(member.stage);
  if (!own.parent.valid() || own.lineage.first(member.history) > 0) return nullptr;
  return &own.crossings[own.lineage.At(member.history, 0)];
}

Status Blamer::NodeHistory::AddNodeEvents(Member member, int32_t until) {
  members_.push_back(member);
  AddDoubts(member);
  for (const NodeEvent& event : stage(member.stage).lineage.events(member.history)) {
    if (event.snapshot > until) break;
    // The crossing reports that it came with its graph.
    if (event.kind == NodeEvent::Kind::kGiven && CrossingOf(member) != nullptr) continue;
    STRATA_RETURN_IF_ERROR(AddNodeEvent(member, event));
  }
  return Ok();
}

Status Blamer::NodeHistory::AddNodeEvent(Member member, const NodeEvent& event) {
  BlameEvent& result = Add(member.stage, event.snapshot);
  result.fields = event.fields;
  const bool deleted = event.kind == NodeEvent::Kind::kDeleted;
  STRATA_TRY(result.node, blamer_.NameAt(member, deleted ? event.snapshot - 1 : event.snapshot));
  STRATA_TRY(std::vector<std::string> names,
             NamesOf(member.stage, event.relatives, deleted ? event.snapshot : event.snapshot - 1));
  switch (event.kind) {
    case NodeEvent::Kind::kGiven:
      result.what = "given";
      break;
    case NodeEvent::Kind::kCreated:
      result.what = Sentence("born", CreationPhrase(event.origin, event.relation), names);
      if (names.empty())
        STRATA_RETURN_IF_ERROR(AddSurroundings(member.stage, event.snapshot, result));
      result.from = std::move(names);
      break;
    case NodeEvent::Kind::kDeleted:
      result.what = Sentence("deleted", DeletionPhrase(event.origin, event.relation), names);
      result.to = std::move(names);
      break;
    case NodeEvent::Kind::kKept: {
      STRATA_TRY(const std::string before, blamer_.NameAt(member, event.snapshot - 1));
      result.what = fmt::format(
          "{}", fmt::join(Differences(event.status, event.fields, before, result.node), ", "));
      break;
    }
  }
  return Ok();
}

Status Blamer::NodeHistory::AddSurroundings(StageId its_stage, int32_t time,
                                            BlameEvent& event) const {
  STRATA_TRY(const LoadedGraph graph, blamer_.Load(stage(its_stage), time));
  const std::string text = Surroundings(graph.graph(), event.node);
  if (!text.empty()) event.what += ": " + text;
  return Ok();
}

Status Blamer::NodeHistory::AddCrossing(Member member, const Crossing& crossing) {
  const Stage& own = stage(member.stage);
  const std::string& parent = blamer_.GraphName(stage(own.parent));
  BlameEvent& result = Add(member.stage, 0);
  STRATA_TRY(result.node, blamer_.NameAt(member, 0));
  if (!crossing.before.valid()) {
    STRATA_TRY(result.from, NamesOf(own.parent, crossing.relatives, own.parent_time));
    result.what = Sentence("born", CreationPhrase(std::nullopt, crossing.relation), result.from);
    if (result.from.empty()) return AddSurroundings(member.stage, 0, result);
    result.what += fmt::format(" of '{}'", parent);
    result.from_graph = parent;
    return Ok();
  }
  STRATA_TRY(const std::string before,
             blamer_.NameAt({own.parent, crossing.before}, own.parent_time));
  std::vector<std::string> parts =
      Differences(crossing.status, crossing.fields, before, result.node);
  parts.insert(parts.begin(), fmt::format("carried over from '{}'", parent));
  result.what = fmt::format("{}", fmt::join(parts, ", "));
  result.fields = crossing.fields;
  result.from_graph = parent;
  return Ok();
}

Result<double> Blamer::NodeHistory::AddChildren(Member member) {
  const Stage& own = stage(member.stage);
  double least = 1;
  bool continues = own.children.empty();
  StageId last_child;
  for (StageId child : own.children) {
    const Stage& next = stage(child);
    if (!own.lineage.At(member.history, next.parent_time).valid()) continue;
    last_child = child;
    const auto found = std::ranges::find(next.crossings, member.history, &Crossing::before);
    if (found == next.crossings.end()) {
      STRATA_TRY(const bool has_successors, AddSuccessors(member, child));
      continues |= has_successors;
      continue;
    }
    continues = true;
    const EntityId entity{static_cast<int32_t>(found - next.crossings.begin())};
    const Member same{child, next.lineage.NodeHistoryAt(0, entity)};
    STRATA_RETURN_IF_ERROR(AddCrossing(same, *found));
    STRATA_RETURN_IF_ERROR(AddSuccessors(member, child));
    STRATA_RETURN_IF_ERROR(AddNodeEvents(same, std::numeric_limits<int32_t>::max()));
    STRATA_TRY(const double onwards, AddChildren(same));
    least = std::min(
        least, found->confidence * onwards *
                   next.lineage.Confidence(same.history, 0, std::numeric_limits<int32_t>::max()));
  }
  // Graphs that are cut out of another one leave out what none of them needs.
  const bool is_last =
      last_child.valid() && stage(last_child).parent_time + 1 == own.lineage.num_snapshots();
  if (continues || !is_last) return least;
  BlameEvent& result = Add(last_child, 0);
  STRATA_TRY(result.node, blamer_.NameAt(member, stage(last_child).parent_time));
  std::vector<std::string> graphs;
  for (StageId child : own.children)
    graphs.push_back(fmt::format("'{}'", blamer_.GraphName(stage(child))));
  result.what = fmt::format("deleted: not in {}", Enumerate(graphs));
  result.from_graph = blamer_.GraphName(own);
  return least;
}

Result<bool> Blamer::NodeHistory::AddSuccessors(Member member, StageId child) {
  const Stage& next = stage(child);
  std::vector<NodeHistoryId> successors;
  std::optional<RelationKind> relation;
  for (EntityId id : IdsOf(next.crossings)) {
    const Crossing& crossing = next.crossings[id];
    if (std::ranges::find(crossing.relatives, member.history) == crossing.relatives.end()) continue;
    successors.push_back(next.lineage.NodeHistoryAt(0, id));
    relation = crossing.relation;
  }
  if (successors.empty()) return false;
  BlameEvent& result = Add(child, 0);
  result.from_graph = blamer_.GraphName(stage(member.stage));
  STRATA_TRY(result.node, blamer_.NameAt(member, next.parent_time));
  STRATA_TRY(result.to, NamesOf(child, successors, 0));
  const std::string_view how =
      relation == RelationKind::kClone ? "copied to" : DeletionPhrase(std::nullopt, relation);
  result.what = fmt::format("{} {}", how, Enumerate(result.to));
  return true;
}

void Blamer::NodeHistory::AddDoubts(Member member) {
  const Stage& own = stage(member.stage);
  for (const Doubt& doubt : own.doubts) {
    if (doubt.history != member.history) continue;
    const bool of_pass = blamer_.history_->stable_ids;
    blame_.contradictions.push_back(
        {of_pass ? blamer_.step(own, doubt.time).pass_index : -1, doubt.what});
  }
}

BlameEvent& Blamer::NodeHistory::Add(StageId its_stage, int32_t time) {
  const Stage& own = stage(its_stage);
  const HistoryStep& at = blamer_.step(own, time);
  BlameEvent& result =
      events_.emplace_back(own.steps[static_cast<size_t>(time)], BlameEvent{}).second;
  result.pass_index = at.pass_index;
  result.pass = at.pass;
  result.graph = blamer_.GraphName(own);
  result.ref = at.ref;
  return result;
}

Result<std::vector<std::string>> Blamer::NodeHistory::NamesOf(
    StageId its_stage, const std::vector<NodeHistoryId>& histories, int32_t time) {
  std::vector<std::string> names;
  for (NodeHistoryId history : histories) {
    relatives_.push_back({its_stage, history});
    // A new node may be made from another new node.
    const Lineage& lineage = stage(its_stage).lineage;
    const bool is_there = lineage.At(history, time).valid();
    STRATA_TRY(std::string name,
               blamer_.NameAt({its_stage, history}, is_there ? time : lineage.first(history)));
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace strata
