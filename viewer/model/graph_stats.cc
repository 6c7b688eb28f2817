#include "viewer/model/graph_stats.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "ir/ops.h"
#include "scene/cost.h"

namespace strata::viewer {
namespace {

/// Scene nodes of the nodes of a comparison's program, before or after.
class NodeLookup {
 public:
  NodeLookup(const Comparison& comparison, bool before)
      : comparison_(comparison),
        before_(before),
        listing_(before ? comparison.diff().before : comparison.diff().after),
        graph_(listing_.root().id()) {}

  /// -1: the listing does not print it.
  int32_t Of(NodeId node) const {
    const EntityId id = listing_.Find(graph_, node);
    if (!id.valid()) return -1;
    return before_ ? comparison_.NodeOfBefore(id) : comparison_.NodeOfAfter(id);
  }

 private:
  const Comparison& comparison_;
  const bool before_;
  const Listing& listing_;
  const GraphId graph_;
};

MemoryLine LineOf(const Comparison& comparison, bool before) {
  const Graph& graph = (before ? comparison.diff().before : comparison.diff().after).root();
  const NodeLookup lookup(comparison, before);
  MemoryLine line;
  line.profile = ProfileMemory(graph);
  line.nodes.reserve(line.profile.live.size());
  for (NodeId id : graph.nodes())
    line.nodes.push_back(lookup.Of(id));
  line.nodes.resize(line.profile.live.size(), -1);
  for (const MemoryProfile::Holder& holder : line.profile.holders)
    line.holders.push_back(lookup.Of(graph.value(holder.value).def));
  return line;
}

bool IsWait(std::string_view op) {
  return op.find("wait_tensor") != std::string_view::npos;
}

/// Puts spans that overlap into several lanes.
void AddInFlight(std::vector<LaneSpan> spans, LaneChart& chart) {
  std::ranges::sort(spans, {}, [](const LaneSpan& s) { return std::pair(s.begin, s.end); });
  std::vector<Lane> lanes;
  for (const LaneSpan& span : spans) {
    const auto free = std::ranges::find_if(
        lanes, [&](const Lane& lane) { return lane.spans.back().end <= span.begin; });
    if (free != lanes.end()) {
      free->spans.push_back(span);
    } else {
      lanes.push_back({fmt::format("in flight {}", lanes.size() + 1), true, {span}});
    }
  }
  chart.lanes.insert(chart.lanes.end(), lanes.begin(), lanes.end());
}

}  // namespace

std::vector<OperatorRow> OperatorsOf(const Comparison& comparison) {
  std::map<std::string, OperatorRow> rows;
  const auto count = [&](const Listing& listing, EntityId id, int32_t node, bool is_after) {
    if (listing[id].element.valid()) return;
    const Graph& graph = listing.graph(id);
    const NodeId ir_node = listing[id].node;
    if (graph.node(ir_node).kind != NodeKind::kCall) return;
    OperatorRow& row = rows[std::string(listing.target(id))];
    (is_after ? row.after : row.before) += 1;
    if (row.first < 0) row.first = node;
    if (!is_after) return;
    row.flops += FlopsOf(graph, ir_node);
    row.bytes += comparison.BytesOf(node);
    if (const NodeStatistics* measured = comparison.MeasuredOf(node))
      row.time_ns += static_cast<double>(measured->time_ns);
  };
  for (int32_t i = 0; i < comparison.size(); ++i) {
    const SceneNode& node = comparison.node(i);
    if (node.before.valid()) count(comparison.diff().before, node.before, i, false);
    if (node.after.valid()) count(comparison.diff().after, node.after, i, true);
  }
  std::vector<OperatorRow> list;
  for (auto& [op, row] : rows) {
    row.op = op;
    list.push_back(std::move(row));
  }
  std::ranges::stable_sort(list, [](const OperatorRow& a, const OperatorRow& b) {
    return std::max(a.before, a.after) > std::max(b.before, b.after);
  });
  return list;
}

MemoryLines MemoryOf(const Comparison& comparison) {
  MemoryLines lines;
  lines.after = LineOf(comparison, false);
  lines.before = LineOf(comparison, true);
  lines.differ = lines.before.profile.live != lines.after.profile.live;
  return lines;
}

LaneChart LanesOf(const Comparison& comparison) {
  const Graph& graph = comparison.diff().after.root();
  const NodeLookup lookup(comparison, false);
  LaneChart chart;
  std::map<uint16_t, Lane> streams;
  std::map<Phase, Lane> phases;
  std::vector<LaneSpan> flights;
  std::unordered_map<int32_t, size_t> flight_of;  // by index of the node that launches
  for (NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::kCall) continue;
    const int32_t at = chart.length++, scene_node = lookup.Of(id);
    if (scene_node < 0) continue;
    const LaneSpan span = {scene_node, at, at + 1};
    streams[node.stream].spans.push_back(span);
    phases[node.phase].spans.push_back(span);
    const std::string_view op = graph.op(id);
    if (TraitsOf(op).collective && !IsWait(op)) {
      ++chart.collectives;
      flight_of[id.index] = flights.size();
      flights.push_back(span);
    } else if (IsWait(op)) {
      for (const ValueId value : graph.operands(id)) {
        const auto flight = flight_of.find(graph.value(value).def.index);
        if (flight != flight_of.end()) flights[flight->second].end = at + 1;
      }
    }
  }
  if (streams.size() > 1) {
    for (auto& [stream, lane] : streams) {
      lane.name = fmt::format("stream {}", stream);
      chart.lanes.push_back(std::move(lane));
    }
  } else {
    for (auto& [phase, lane] : phases) {
      lane.name = phase == Phase::kUnknown ? "no phase" : std::string(ToString(phase));
      chart.lanes.push_back(std::move(lane));
    }
  }
  AddInFlight(std::move(flights), chart);
  return chart;
}

}  // namespace strata::viewer
