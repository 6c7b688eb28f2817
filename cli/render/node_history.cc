#include "cli/render/node_history.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/json.h"
#include "base/unicode.h"

namespace strata::cli {
namespace {

std::string When(const BlameEvent& event) {
  return event.pass_index < 0 ? std::string("-") : fmt::format("pass {}", event.pass_index);
}

std::string NodeText(const Blame& blame) {
  std::string out = fmt::format("{}  in graph '{}'", Visible(blame.node), Visible(blame.graph));
  if (blame.confidence < 0.995) out += fmt::format("  confidence {:.2f}", blame.confidence);
  out += '\n';
  if (!blame.source.empty()) out += fmt::format("  from {}\n", Visible(blame.source));
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

void WriteText(JsonWriter& json, std::string_view key,
               const std::optional<std::string_view>& text) {
  json.Key(key);
  text ? json.String(*text) : json.Null();
}

void WriteBlame(JsonWriter& json, const Blame& blame, int indent) {
  json.Break(indent).Field("node", blame.node).Field("graph", blame.graph);
  json.Break(indent)
      .Field("ref", blame.ref)
      .Field("confidence", std::round(blame.confidence * 1000) / 1000);
  json.Break(indent).Key("source");
  blame.source.empty() ? json.Null() : json.String(blame.source);
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

}  // namespace

std::string BlameText(const Blame& blame, const std::vector<Blame>& relatives) {
  std::string out = NodeText(blame);
  for (const Blame& relative : relatives)
    out += "\n" + NodeText(relative);
  return out;
}

std::string BlameJson(const Blame& blame, const std::vector<Blame>& relatives) {
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

}  // namespace strata::cli
