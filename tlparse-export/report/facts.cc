#include "tlparse-export/report/facts.h"

#include <algorithm>
#include <map>

#include "ir/module.h"
#include "ir/ops.h"
#include "scene/cost.h"
#include "scene/memory.h"
#include "tlparse-export/report/texts.h"

namespace strata {
namespace {

std::string TypeOf(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  return type.valid() ? graph.module().types().ToString(type) : "";
}

std::string PhaseOf(const Node& node) {
  return node.phase == Phase::kUnknown ? "" : std::string(ToString(node.phase));
}

/// Literals of a call that are text: the names of process groups and reductions.
std::string GroupOf(const Graph& graph, NodeId node) {
  std::string group;
  const auto add = [&](const Arg& arg) {
    if (arg.kind() != ArgKind::kString) return;
    if (!group.empty()) group += ", ";
    group += graph.module().str(arg.str());
  };
  for (const Arg& arg : graph.args(node))
    add(arg);
  for (size_t i = 0; i < graph.node(node).num_kwargs; ++i)
    add(graph.kwarg(node, i).value);
  return group;
}

void AddMemory(const Graph& graph, GraphFacts& facts) {
  const MemoryProfile profile = ProfileMemory(graph);
  facts.peak = profile.peak;
  facts.inputs = profile.inputs;
  facts.unknown = profile.unknown;
  std::vector<size_t> points_at;
  const size_t nodes = profile.live.size(), points = std::min(nodes, GraphFacts::kPoints);
  for (size_t i = 0; i < points; ++i) {
    const auto begin = profile.live.begin() + static_cast<std::ptrdiff_t>(nodes * i / points);
    const auto end = profile.live.begin() + static_cast<std::ptrdiff_t>(nodes * (i + 1) / points);
    const auto most = std::max_element(begin, end);
    facts.live.push_back(*most);
    points_at.push_back(static_cast<size_t>(most - profile.live.begin()));
  }
  size_t at = 0, point = 0;
  for (NodeId id : graph.nodes()) {
    if (point < points && points_at[point] == at++) {
      facts.live_at.emplace_back(graph.name(id));
      ++point;
    }
  }
  for (const MemoryProfile::Holder& holder : profile.holders) {
    if (facts.holders.size() == GraphFacts::kHolders) break;
    const NodeId id = graph.value(holder.value).def;
    const Node& node = graph.node(id);
    facts.holders.push_back({.name = std::string(graph.value_name(holder.value)),
                             .op = std::string(node.op.valid() ? graph.op(id) : "input"),
                             .type = TypeOf(graph, holder.value),
                             .module = std::string(graph.module().str(node.module)),
                             .phase = PhaseOf(node),
                             .bytes = holder.bytes});
  }
}

/// `model.py:12`; "" where the source is not known.
std::string PlaceOf(const Graph& graph, const Node& node) {
  if (!node.loc.valid()) return "";
  const SourceLoc& loc = graph.module().loc(node.loc);
  const std::string_view file = graph.module().str(loc.file);
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), loc.line);
}

}  // namespace

GraphFacts FactsOf(const Graph& graph) {
  GraphFacts facts;
  AddMemory(graph, facts);
  std::map<std::string_view, int32_t> counts;
  Phase phase = Phase::kUnknown;
  double at = 0;
  const double nodes = std::max(1, graph.num_nodes());
  for (NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    // Inputs have no phase, and a graph may interleave a few nodes of another one.
    if (node.phase > phase) {
      if (phase != Phase::kUnknown) facts.phases.emplace_back(ToString(phase), at / nodes);
      phase = node.phase;
    }
    at += 1;
    if (node.kind != NodeKind::kCall) continue;
    facts.flops += FlopsOf(graph, id);
    const std::string_view op = graph.op(id);
    ++counts[op];
    if (!TraitsOf(op).collective || facts.collectives.size() == GraphFacts::kCollectives) continue;
    facts.collectives.push_back(
        {.name = std::string(graph.name(id)),
         .op = std::string(op),
         .type = node.num_results == 0 ? "" : TypeOf(graph, graph.result(id)),
         .group = GroupOf(graph, id),
         .module = std::string(graph.module().str(node.module)),
         .phase = PhaseOf(node),
         .place = PlaceOf(graph, node)});
  }
  if (phase != Phase::kUnknown) facts.phases.emplace_back(ToString(phase), 1);
  facts.ops.assign(counts.begin(), counts.end());
  return facts;
}

void AppendJson(const GraphFacts& facts, JsonWriter& json) {
  json.BeginObject().Field("peak", facts.peak).Field("inputs", facts.inputs);
  json.Field("unknown", facts.unknown).Field("flops", facts.flops);
  json.Key("live").BeginArray();
  for (int64_t bytes : facts.live)
    json.Int(bytes);
  json.EndArray().Key("live_at").BeginArray();
  for (const std::string& name : facts.live_at)
    json.String(Texts::Cut(name));
  json.EndArray().Key("phases").BeginArray();
  for (const auto& [name, end] : facts.phases)
    json.BeginArray().String(name).Double(end).EndArray();
  json.EndArray().Key("holders").BeginArray();
  for (const GraphFacts::Holder& h : facts.holders) {
    json.BeginArray();
    for (const std::string& text : {h.name, h.op, h.type, h.module, h.phase})
      json.String(Texts::Cut(text));
    json.Int(h.bytes).EndArray();
  }
  json.EndArray().Key("ops").BeginArray();
  for (const auto& [op, count] : facts.ops)
    json.BeginArray().String(Texts::Cut(op)).Int(count).EndArray();
  json.EndArray().Key("collectives").BeginArray();
  for (const GraphFacts::Collective& c : facts.collectives) {
    json.BeginArray();
    for (const std::string& text : {c.name, c.op, c.type, c.group, c.module, c.phase, c.place})
      json.String(Texts::Cut(text));
    json.EndArray();
  }
  json.EndArray().EndObject();
}

}  // namespace strata
