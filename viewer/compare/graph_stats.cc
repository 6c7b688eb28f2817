#include "viewer/compare/graph_stats.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "base/unicode.h"
#include "ir/ops.h"
#include "passes/simulate/timeline.h"
#include "scene/cost.h"
#include "scene/words.h"

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

  /// None: the listing does not print it.
  SceneNodeId Of(NodeId node) const {
    const EntityId id = listing_.Find(graph_, node);
    if (!id.valid()) return {};
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
  line.nodes.resize(line.profile.live.size());
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

/// Lays the calls of the graph after one behind the other, by stream or phase, and collectives from
/// launch to wait. `end_of`: where the call ends that begins where the one before ended; called in
/// program order. Returns the number of collectives.
template <class EndOf>
size_t AddCalls(const Comparison& comparison, LaneChart& chart, EndOf end_of) {
  const Graph& graph = comparison.diff().after.root();
  const NodeLookup lookup(comparison, false);
  std::map<uint16_t, Lane> streams;
  std::map<Phase, Lane> phases;
  std::vector<LaneSpan> flights;
  std::unordered_map<NodeId, size_t> flight_of;  // by the node that launches
  for (NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    const SceneNodeId scene_node = node.kind == NodeKind::kCall ? lookup.Of(id) : SceneNodeId();
    if (!scene_node.valid()) continue;
    const double begin = chart.length;
    chart.length = end_of(scene_node);
    const LaneSpan span = {scene_node, begin, chart.length};
    streams[node.stream].spans.push_back(span);
    phases[node.phase].spans.push_back(span);
    const std::string_view op = graph.op(id);
    if (TraitsOf(op).collective && !IsWait(op)) {
      flight_of[id] = flights.size();
      flights.push_back(span);
    } else if (IsWait(op)) {
      for (const ValueId value : graph.operands(id)) {
        const auto flight = flight_of.find(graph.value(value).def);
        if (flight != flight_of.end()) flights[flight->second].end = chart.length;
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
  const size_t collectives = flights.size();
  AddInFlight(std::move(flights), chart);
  return collectives;
}

}  // namespace

std::vector<OperatorRow> OperatorsOf(const Comparison& comparison) {
  std::map<std::string, OperatorRow> rows;
  const auto count = [&](const Listing& listing, EntityId id, SceneNodeId node, bool is_after) {
    if (listing[id].element.valid()) return;
    const Graph& graph = listing.graph(id);
    const NodeId ir_node = listing[id].node;
    if (graph.node(ir_node).kind != NodeKind::kCall) return;
    OperatorRow& row = rows[std::string(listing.target(id))];
    (is_after ? row.after : row.before) += 1;
    if (!row.first.valid()) row.first = node;
    if (!is_after) return;
    row.flops += FlopsOf(graph, ir_node);
    row.bytes += comparison.BytesOf(node);
    if (const NodeStatistics* measured = comparison.MeasuredOf(node))
      row.time_ns += static_cast<double>(measured->time_ns);
  };
  for (SceneNodeId i : comparison.nodes()) {
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

LaneChart LanesInOrder(const Comparison& comparison) {
  LaneChart chart;
  int64_t calls = 0;
  const size_t collectives =
      AddCalls(comparison, chart, [&](SceneNodeId) { return static_cast<double>(++calls); });
  chart.words = fmt::format(
      "{} in program order, {}.", Plural(calls, "call"),
      collectives > 0 ? fmt::format("{} from launch to wait",
                                    Plural(static_cast<int64_t>(collectives), "collective"))
                      : std::string("no collectives"));
  return chart;
}

LaneChart MeasuredLanes(const Comparison& comparison) {
  LaneChart chart;
  double us = 0;
  AddCalls(comparison, chart, [&](SceneNodeId node) {
    const NodeStatistics* measured = comparison.MeasuredOf(node);
    if (measured != nullptr) us += static_cast<double>(measured->time_ns) * 1e-3;
    return us;
  });
  chart.words = fmt::format("Measured: {} in calls of a step, one after the other.",
                            TimeText(chart.length * 1e-3));
  return chart;
}

LaneChart SimulatedLanes(const Comparison& comparison, const std::string& topology) {
  const Graph& graph = comparison.diff().after.root();
  LaneChart chart;
  const auto simulate = [&]() -> Result<Timeline> {
    STRATA_TRY(Topology loaded, Topology::Load(topology));
    STRATA_TRY(const NodeCost cost, NodeCost::Make(std::move(loaded), graph));
    return Simulate(graph, cost);
  };
  const Result<Timeline> timeline = simulate();
  if (!timeline) {
    chart.words = VisibleLines(timeline.error().message());
    return chart;
  }
  for (const std::string& stream : timeline->streams)
    chart.lanes.push_back(
        {stream.empty() ? "collectives" : Visible(stream), !chart.lanes.empty(), {}});
  const NodeLookup lookup(comparison, false);
  for (const TimelineEvent& event : timeline->events) {
    chart.length = std::max(chart.length, event.end_us);
    const SceneNodeId node = lookup.Of(event.node);
    if (event.is_idle || !node.valid() || event.end_us <= event.start_us) continue;
    chart.lanes[static_cast<size_t>(event.stream)].spans.push_back(
        {node, event.start_us, event.end_us});
  }
  chart.words = fmt::format(
      "Estimated for {}: a step of {}, {} of computation, {} of waiting for "
      "collectives.",
      topology, TimeText(timeline->step_us * 1e-3), TimeText(timeline->compute_us * 1e-3),
      TimeText(timeline->exposed_us() * 1e-3));
  return chart;
}

}  // namespace strata::viewer
