#include "refs/find_node.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/shell.h"
#include "base/text.h"
#include "diff/graph/listing.h"
#include "diff/history/blame.h"
#include "diff/match/labels.h"
#include "diff/pattern/layers.h"
#include "diff/policy/name_pattern.h"
#include "ir/ops.h"

namespace strata {
namespace {

/// Names of the nodes of a graph that `wanted` names.
std::vector<std::string> FindNodes(const Graph& graph, std::string_view wanted, bool stable_ids) {
  const Listing listing(graph);
  if (listing.FindName(wanted).valid()) return {std::string(wanted)};
  std::vector<std::string> names;
  const size_t colon = std::min(wanted.find(':'), wanted.size());
  const std::string_view path = wanted.substr(0, colon);
  const std::string_view op = wanted.substr(std::min(colon + 1, wanted.size()));
  uint64_t number = 0;
  const bool is_id =
      wanted.starts_with('#') && stable_ids &&
      std::from_chars(wanted.data() + 1, wanted.data() + wanted.size(), number).ec == std::errc();
  for (EntityId id : listing.ids()) {
    const Entity& entity = listing[id];
    const Graph& owner = listing.graph(id);
    const Node& node = owner.node(entity.node);
    if (is_id) {
      if (node.stable_id == StableId{number} && !entity.element.valid())
        names.push_back(listing.name(id));
      continue;
    }
    const bool is_in_body = listing.scope_of(id) != Listing::kProgram;
    if (is_in_body && listing.name(id).ends_with(fmt::format("/{}", wanted))) {
      names.push_back(listing.name(id));
      continue;
    }
    const std::string_view target = listing.target(id);
    const bool fits = owner.module().str(node.module) == path &&
                      (op.empty() || target == op || BaseName(target) == op);
    if (!path.empty() && fits) names.push_back(listing.name(id));
  }
  return names;
}

/// Names of the nodes whose place diffs state as `wanted`: a module that their neighbours state, or
/// one around it; several as `layers.{0..3}`. Behind a colon stands the operator.
std::vector<std::string> FindByPlace(const Graph& graph, std::string_view wanted) {
  const size_t colon = std::min(wanted.find(':'), wanted.size());
  const std::string_view op = wanted.substr(std::min(colon + 1, wanted.size()));
  const Result<NamePattern> place = NamePattern::Parse(wanted.substr(0, colon));
  const std::string inside = fmt::format("{}.*", wanted.substr(0, colon));
  const Result<NamePattern> around = NamePattern::Parse(inside);
  std::vector<std::string> names;
  if (!place || !around || colon == 0) return names;
  const Listing listing(graph);
  const Layers layers(listing, Labels(listing, KnownTypeFields(listing)));
  for (EntityId id : listing.ids()) {
    if (listing[id].kind != EntityKind::kCompute) continue;
    const std::string_view path = layers.path(id), target = listing.target(id);
    const bool fits = op.empty() || target == op || BaseName(target) == op;
    if (fits && (place->Matches(path) || around->Matches(path))) names.push_back(listing.name(id));
  }
  return names;
}

bool IsPass(const std::string& wanted, const HistoryStep& step) {
  if (step.pass_index < 0) return false;
  constexpr std::string_view kEllipsis = "…";
  if (wanted == fmt::format("{}", step.pass_index) || wanted == step.pass) return true;
  return wanted.ends_with(kEllipsis) &&
         step.pass.starts_with(wanted.substr(0, wanted.size() - kEllipsis.size()));
}

/// Snapshots of a graph at which the selector asks for the node, the last one first.
std::vector<int32_t> SnapshotsOf(const History& history, int32_t graph, const Ref& ref) {
  std::vector<int32_t> snapshots;
  for (const HistoryStep& step : history.steps) {
    if (step.graph != graph) continue;
    if (!ref.pass) {
      snapshots.push_back(step.after);
    } else if (IsPass(*ref.pass, step)) {
      snapshots.push_back(ref.side == Ref::Side::kBefore ? step.before : step.after);
    }
  }
  std::erase(snapshots, -1);
  std::ranges::reverse(snapshots);
  return snapshots;
}

/// Adds the node as the graph has it last. Several nodes of one module are each a target.
Status FindIn(const History& history, int32_t graph, const Ref& ref, std::string_view wanted,
              bool& any_snapshot, std::vector<HistoryNode>& targets) {
  std::string last;
  for (int32_t snapshot : SnapshotsOf(history, graph, ref)) {
    any_snapshot = true;
    if (history.snapshot(snapshot).content == last) continue;
    last = history.snapshot(snapshot).content;
    STRATA_TRY(const LoadedGraph loaded, history.load(snapshot));
    std::vector<std::string> names = FindNodes(loaded.graph(), wanted, history.stable_ids);
    if (names.empty()) names = FindByPlace(loaded.graph(), wanted);
    for (const std::string& name : names)
      targets.push_back({&history, graph, snapshot, name});
    if (!names.empty()) break;
  }
  return Ok();
}

/// The compilation of a graph, `0/0` of `0/0_1`, and the attempt at it.
std::pair<std::string_view, int64_t> AttemptOf(const HistoryNode& target) {
  const std::vector<GraphRecord>& records = target.history->records;
  if (records.empty()) return {"", 0};
  const std::string_view id = records[static_cast<size_t>(target.graph)].compilation;
  const size_t end = std::min(id.find('_'), id.size());
  int64_t attempt = 0;
  std::from_chars(id.data() + std::min(end + 1, id.size()), id.data() + id.size(), attempt);
  return {id.substr(0, end), attempt};
}

/// Drops nodes of graphs that a restart of their compilation replaced.
void KeepLastAttempts(std::vector<HistoryNode>& targets) {
  std::map<std::pair<const History*, std::string_view>, int64_t> last;
  for (const HistoryNode& target : targets) {
    const auto [compilation, attempt] = AttemptOf(target);
    int64_t& greatest = last[{target.history, compilation}];
    greatest = std::max(greatest, attempt);
  }
  std::erase_if(targets, [&](const HistoryNode& target) {
    const auto [compilation, attempt] = AttemptOf(target);
    return attempt < last.at({target.history, compilation});
  });
}

/// Keeps the first of the targets that are one node in graphs made from each other. Beyond the
/// first kMostFamilies families of graphs all targets are kept: an error does not list that many.
Result<std::vector<HistoryNode>> WithoutRepetitions(const std::vector<HistoryNode>& targets) {
  constexpr int kMostFamilies = 32;
  std::vector<HistoryNode> left = targets, kept;
  for (int family = 0; family < kMostFamilies && !left.empty(); ++family) {
    const HistoryNode first = left[0];
    STRATA_TRY(const Blamer blamer, Blamer::Make(*first.history, first.graph));
    const auto is_kin = [&](const HistoryNode& target) {
      return target.history == first.history && blamer.Covers(target.graph);
    };
    std::vector<Blamer::Occurrence> places;
    for (const HistoryNode& target : left) {
      if (is_kin(target)) places.emplace_back(target.snapshot, target.name);
    }
    STRATA_TRY(places, blamer.FirstOccurrences(places));
    for (const HistoryNode& target : left) {
      if (is_kin(target) &&
          std::ranges::find(places, Blamer::Occurrence(target.snapshot, target.name)) !=
              places.end())
        kept.push_back(target);
    }
    std::erase_if(left, is_kin);
  }
  kept.insert(kept.end(), left.begin(), left.end());
  return kept;
}

/// The nodes that `GRAPH:NODE` names.
Result<std::vector<HistoryNode>> FindInNamedGraph(const std::vector<History>& histories,
                                                  const Ref& ref, std::string_view wanted) {
  std::vector<HistoryNode> targets;
  bool any_snapshot = false;
  for (const History& history : histories) {
    for (size_t graph = 0; graph < history.graphs.size(); ++graph) {
      const std::string& name = history.graphs[graph];
      if (!wanted.starts_with(name) || !wanted.substr(name.size()).starts_with(':')) continue;
      STRATA_RETURN_IF_ERROR(FindIn(history, static_cast<int32_t>(graph), ref,
                                    wanted.substr(name.size() + 1), any_snapshot, targets));
    }
  }
  return targets;
}

}  // namespace

Result<HistoryNode> FindHistoryNode(const std::vector<History>& histories, const Ref& ref,
                                    std::string_view wanted) {
  std::vector<HistoryNode> targets;
  bool any_snapshot = false;
  std::vector<std::string> graphs;
  for (const History& history : histories) {
    for (size_t graph = 0; graph < history.graphs.size(); ++graph) {
      graphs.push_back(history.graphs[graph]);
      if (ref.graph && *ref.graph != history.graphs[graph]) continue;
      STRATA_RETURN_IF_ERROR(
          FindIn(history, static_cast<int32_t>(graph), ref, wanted, any_snapshot, targets));
    }
  }
  if (targets.empty() && !ref.graph) {
    STRATA_TRY(targets, FindInNamedGraph(histories, ref, wanted));
  }
  KeepLastAttempts(targets);
  if (targets.size() > 1) {
    STRATA_TRY(targets, WithoutRepetitions(targets));
  }
  if (targets.size() == 1) return targets[0];
  if (targets.empty() && !any_snapshot) {
    return Error(ErrorCode::kNotFound,
                 "no such graph or pass: {}: 'strata ls' lists them; it has graphs {}", ref.text,
                 Enumerate(graphs));
  }
  if (targets.empty()) {
    return Error(ErrorCode::kNotFound,
                 "no node '{}': {}: give a name, '#' and a stable id, or a module path; 'strata "
                 "show' lists the nodes of a graph",
                 wanted, ref.text);
  }
  std::string list;
  constexpr size_t kShown = 40;
  for (const HistoryNode& target : std::span(targets).first(std::min(targets.size(), kShown))) {
    list += fmt::format("\n  {} {}", ShellWord(target.history->snapshot(target.snapshot).ref),
                        target.name);
  }
  if (targets.size() > kShown) list += fmt::format("\n  and {} more", targets.size() - kShown);
  return Error("'{}' names several nodes: {}: say which one:{}", wanted, ref.text, list);
}

}  // namespace strata
