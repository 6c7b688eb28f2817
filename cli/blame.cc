#include "diff/history/blame.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "base/json.h"
#include "base/shell.h"
#include "base/text.h"
#include "base/unicode.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "ir/ops.h"
#include "refs/histories.h"
#include "refs/ref.h"

namespace strata::cli {
namespace {

/// A node that was asked for.
struct Target {
  const History* history = nullptr;
  int32_t graph = 0, moment = 0;
  std::string name;
};

/// Nodes of a graph that `wanted` means: a name, also without the bodies that the node is in, `#`
/// and a stable id, a module path, or a module path, a colon and an operator.
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
              bool& any_snapshot, std::vector<Target>& targets) {
  std::string last;
  for (int32_t moment : SnapshotsOf(history, graph, ref)) {
    any_snapshot = true;
    if (history.snapshot(moment).content == last) continue;
    last = history.snapshot(moment).content;
    STRATA_TRY(const LoadedGraph loaded, history.load(moment));
    const std::vector<std::string> names = FindNodes(loaded.graph(), wanted, history.stable_ids);
    for (const std::string& name : names)
      targets.push_back({&history, graph, moment, name});
    if (!names.empty()) break;
  }
  return Ok();
}

/// Keeps the first of the targets that are one node in graphs made from each other. Beyond the
/// first kMostFamilies families of graphs all targets are kept: an error does not list that many.
Result<std::vector<Target>> WithoutRepetitions(const std::vector<Target>& targets) {
  constexpr int kMostFamilies = 32;
  std::vector<Target> left = targets, kept;
  for (int family = 0; family < kMostFamilies && !left.empty(); ++family) {
    const Target first = left[0];
    STRATA_TRY(const Blamer blamer, Blamer::Make(*first.history, first.graph));
    const auto is_kin = [&](const Target& target) {
      return target.history == first.history && blamer.Covers(target.graph);
    };
    std::vector<Blamer::Occurrence> places;
    for (const Target& target : left) {
      if (is_kin(target)) places.emplace_back(target.moment, target.name);
    }
    STRATA_TRY(places, blamer.FirstOccurrences(places));
    for (const Target& target : left) {
      if (is_kin(target) &&
          std::ranges::find(places, Blamer::Occurrence(target.moment, target.name)) != places.end())
        kept.push_back(target);
    }
    std::erase_if(left, is_kin);
  }
  kept.insert(kept.end(), left.begin(), left.end());
  return kept;
}

Result<Target> FindTarget(const std::vector<History>& histories, const Ref& ref,
                          std::string_view wanted) {
  std::vector<Target> targets;
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
  for (const Target& target : std::span(targets).first(std::min(targets.size(), kShown))) {
    list += fmt::format("\n  {} {}", ShellWord(target.history->snapshot(target.moment).ref),
                        target.name);
  }
  if (targets.size() > kShown) list += fmt::format("\n  and {} more", targets.size() - kShown);
  return Error("'{}' names several nodes: {}: say which one:{}", wanted, ref.text, list);
}

std::string When(const BlameEvent& event) {
  return event.pass_index < 0 ? std::string("-") : fmt::format("pass {}", event.pass_index);
}

std::string Text(const Blame& blame) {
  std::string out = fmt::format("{}  in graph '{}'", Visible(blame.node), Visible(blame.graph));
  if (blame.confidence < 0.995) out += fmt::format("  confidence {:.2f}", blame.confidence);
  out += '\n';
  const bool one_graph = std::ranges::all_of(
      blame.events, [&](const BlameEvent& event) { return event.graph == blame.graph; });
  size_t graph = 0, when = 0, pass = 0;
  for (const BlameEvent& event : blame.events) {
    graph = std::max(graph, DisplayWidth(Visible(event.graph)));
    when = std::max(when, When(event).size());
    pass = std::max(pass, DisplayWidth(Visible(event.pass)));
  }
  for (const BlameEvent& event : blame.events) {
    if (!one_graph) out += fmt::format("  {:<{}}", Visible(event.graph), graph);
    out += fmt::format("  {:<{}}", When(event), when);
    if (pass > 0) out += fmt::format("  {:<{}}", Visible(event.pass), pass);
    out += fmt::format("  {}\n", Visible(event.what));
  }
  for (const Blame::Doubt& doubt : blame.contradictions) {
    out += fmt::format("  ! {}{}\n",
                       doubt.pass_index < 0 ? "" : fmt::format("pass {}: ", doubt.pass_index),
                       Visible(doubt.what));
  }
  return out;
}

void WriteNames(JsonWriter& json, std::string_view key, const std::vector<std::string>& names) {
  json.Key(key).BeginArray();
  for (const std::string& name : names)
    json.String(name);
  json.EndArray();
}

void WriteText(JsonWriter& json, std::string_view key, const std::optional<std::string>& text) {
  json.Key(key);
  text ? json.String(*text) : json.Null();
}

void WriteBlame(JsonWriter& json, const Blame& blame, int indent) {
  json.Break(indent).Field("node", blame.node).Field("graph", blame.graph);
  json.Break(indent)
      .Field("ref", blame.ref)
      .Field("confidence", std::round(blame.confidence * 1000) / 1000);
  json.Break(indent).Key("events").BeginArray();
  for (const BlameEvent& event : blame.events) {
    json.Break(indent + 2).BeginObject().Key("pass");
    event.pass_index < 0 ? json.Null() : json.Int(event.pass_index);
    json.Key("pass_name");
    event.pass_index < 0 ? json.Null() : json.String(event.pass);
    json.Field("graph", event.graph).Field("what", event.what).Field("node", event.node);
    WriteNames(json, "from", event.from);
    WriteNames(json, "to", event.to);
    json.Key("from_graph");
    event.from_graph.empty() ? json.Null() : json.String(event.from_graph);
    json.Field("ref", event.ref).Key("fields").BeginArray();
    for (const FieldDiff& field : event.fields) {
      json.BeginObject().Field("path", field.path);
      WriteText(json, "before", field.before);
      WriteText(json, "after", field.after);
      json.Field("derived", field.derived).EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
  json.Break(indent).Key("contradictions").BeginArray();
  for (const Blame::Doubt& doubt : blame.contradictions) {
    json.BeginObject().Key("pass");
    doubt.pass_index < 0 ? json.Null() : json.Int(doubt.pass_index);
    json.Field("what", doubt.what).EndObject();
  }
  json.EndArray();
}

/// As `strata.blame/1` of docs/json.md says.
std::string Json(const Blame& blame, const std::vector<Blame>& relatives) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Break(2).Field("schema", "strata.blame/1");
  WriteBlame(json, blame, 2);
  json.Break(2).Key("relatives").BeginArray();
  for (const Blame& relative : relatives) {
    json.Break(4).BeginObject();
    WriteBlame(json, relative, 6);
    json.Break(4).EndObject();
  }
  json.EndArray().Break(0).EndObject();
  return out + "\n";
}

}  // namespace

Result<Exit> RunBlame(Args args) {
  std::string where, node;
  bool as_json = false, follow = false;
  Flags flags("blame", "shows the history of a node across passes and graphs");
  flags.Positional("T", &where, "a trace or a log; a selector chooses the graph and the pass");
  flags.Positional("NODE", &node, "a name, '#12' for a stable id, or a module path[:operator]");
  flags.Switch("--follow", &follow, "also show the histories of its ancestors and replacements");
  flags.Switch("--json", &as_json, "print strata.blame/1");
  flags.Example("strata blame run.strata mm_3");
  flags.Example("strata blame 'run.strata#graph=step,pass=dce:before' detach_7 --follow");
  flags.Example("strata blame run.log layers.3.attention.wq:mm --json");
  STRATA_TRY(const bool go_on, flags.Parse(args));
  if (!go_on) return Exit::kOk;

  STRATA_TRY(const Ref ref, ParseRef(where));
  STRATA_TRY(const std::vector<History> histories, LoadHistories(where));
  STRATA_TRY(const Target target, FindTarget(histories, ref, node));
  STRATA_TRY(const Blamer blamer, Blamer::Make(*target.history, target.graph));
  STRATA_TRY(const Blame blame, blamer.Follow(target.moment, target.name));
  std::vector<Blame> relatives;
  if (follow) {
    constexpr size_t kMaxRelatives = 32;
    STRATA_TRY(relatives, blamer.Relatives(target.moment, target.name, kMaxRelatives));
  }
  std::string out = as_json ? Json(blame, relatives) : Text(blame);
  for (size_t i = 0; !as_json && i < relatives.size(); ++i)
    out += "\n" + Text(relatives[i]);
  STRATA_RETURN_IF_ERROR(WriteFile("-", out));
  return Exit::kOk;
}

}  // namespace strata::cli
