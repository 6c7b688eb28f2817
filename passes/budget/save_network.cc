#include "passes/budget/save_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/by_node.h"
#include "ir/module.h"
#include "ir/ops.h"
#include "passes/core/written_memory.h"
#include "passes/memory/max_flow.h"
#include "passes/memory/offloadable.h"
#include "passes/memory/tag_memory.h"

namespace strata {
namespace {

constexpr int64_t kInfinite = FlowNetwork::kInfinite;
constexpr double kUnitsPerUs = 1e4;

int64_t Capacity(double us) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(us * kUnitsPerUs, 1e13)));
}

bool IsForward(const Graph& graph, NodeId node) {
  return graph.node(node).kind != NodeKind::kOutput && !IsBackward(graph, node);
}

template <class Fn>
void ForEachReader(const Graph& graph, NodeId node, Fn&& fn) {
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    for (const Use use : graph.uses(graph.result(node, i)))
      fn(use.user);
  }
}

bool IsReadAfterLoss(const Graph& graph, NodeId node) {
  bool is_read = false;
  ForEachReader(graph, node, [&](NodeId reader) {
    const std::string_view module = ModuleOf(graph, reader);
    is_read |= IsBackward(graph, reader) && module != "loss" && module != "lm_head";
  });
  return is_read;
}

bool FeedsLaterLayer(const Graph& graph, NodeId node) {
  const int64_t layer = LayerNumber(ModuleOf(graph, node));
  bool feeds = false;
  ForEachReader(graph, node, [&](NodeId reader) {
    feeds |= IsForward(graph, reader) && LayerNumber(ModuleOf(graph, reader)) > layer;
  });
  return feeds;
}

/// Of results with memory of their own; -1: a result of unknown type.
int64_t OwnBytes(const Graph& graph, NodeId node) {
  int64_t bytes = 0;
  for (size_t i = 0; i < graph.node(node).num_results; ++i) {
    const Value& value = graph.value(graph.result(node, i));
    if (!value.type.valid() || graph.module().types()[value.type].kind == TypeKind::kOpaque)
      return -1;
    if (!value.alias_of.valid()) bytes += graph.module().types().Bytes(value.type).value_or(4096);
  }
  return bytes;
}

bool IsKept(const Graph& graph, NodeId node) {
  const std::string_view op = graph.op(node);
  const bool is_gather = IsOverloadOf(op, "_c10d_functional.all_gather_into_tensor");
  return IsNeverRecomputed(graph, node) || IsOverloadOf(op, "aten.topk") ||
         (TraitsOf(op).collective && !is_gather);
}

}  // namespace

SaveNetwork::SaveNetwork(const Graph& graph, const MemoryCosts& costs)
    : graph_(graph),
      costs_(costs),
      bytes_(ByNode<int64_t>(graph)),
      offload_bytes_(OffloadableBytes(graph)),
      is_view_(ByNode<bool>(graph)),
      is_kept_(is_view_),
      is_read_(is_view_) {
  for (const NodeId node : graph.nodes()) {
    if (!IsForward(graph, node)) continue;
    bytes_[node] = OwnBytes(graph, node);
    is_view_[node] = IsViewNode(graph, node);
    is_kept_[node] = IsKept(graph, node);
    is_read_[node] = IsReadAfterLoss(graph, node);
  }
  // Of a view that a layer hands on, what it views is kept.
  for (const NodeId node : graph.nodes()) {
    if (!IsForward(graph, node) || !FeedsLaterLayer(graph, node)) continue;
    is_kept_[node] = true;
    for (size_t i = 0; i < graph.node(node).num_results; ++i)
      is_kept_[graph.value(OwnerOf(graph, graph.result(node, i))).def] = true;
  }
}

Result<MemoryPlanTags> SaveNetwork::Solve(double us_per_byte, bool offloads) const {
  const int32_t source = 2 * graph_.node_bound(), sink = source + 1;
  FlowNetwork flow(sink + 1);
  const auto in = [](NodeId node) { return 2 * node.index; };
  const auto out = [](NodeId node) { return 2 * node.index + 1; };
  const auto is_offloaded = [&](NodeId node) {
    return offloads && offload_bytes_[node] > 0 && costs_.offload_us_per_byte < us_per_byte;
  };
  for (const NodeId node : graph_.nodes()) {
    if (!IsForward(graph_, node)) continue;
    const bool is_input = graph_.node(node).kind != NodeKind::kCall;
    const bool is_saveable = !is_view_[node] && bytes_[node] >= 0;
    const double price = is_offloaded(node) ? costs_.offload_us_per_byte : us_per_byte;
    flow.AddEdge(in(node), out(node),
                 is_input       ? 0
                 : !is_saveable ? kInfinite
                                : Capacity(price * static_cast<double>(bytes_[node])));
    const bool is_fixed = is_input || (is_kept_[node] && is_saveable);
    flow.AddEdge(source, in(node),
                 is_fixed         ? kInfinite
                 : is_view_[node] ? 0
                                  : Capacity(costs_.RecomputeUs(node)));
    if (is_read_[node]) flow.AddEdge(out(node), sink, kInfinite);
    ForEachReader(graph_, node, [&](NodeId reader) {
      if (IsForward(graph_, reader)) flow.AddEdge(out(node), in(reader), kInfinite);
    });
  }
  if (flow.Run(source, sink) >= kInfinite) {
    return Error(
        "no set of results can be saved: graph {}: backward needs results of unknown type, take "
        "another policy",
        graph_.name_text());
  }
  MemoryPlanTags tags(bytes_.size(), MemoryTag::kMustRecompute);
  for (const NodeId node : graph_.nodes()) {
    if (!IsForward(graph_, node) || graph_.node(node).kind != NodeKind::kCall) continue;
    const auto on_source_side = [&](int32_t vertex) {
      return flow.source_side()[static_cast<size_t>(vertex)];
    };
    if (on_source_side(in(node)) && !on_source_side(out(node))) {
      tags[node] = is_offloaded(node) ? MemoryTag::kMustCpuOffload : MemoryTag::kMustSave;
    }
  }
  return tags;
}

Result<SaveNetwork::Point> SaveNetwork::SolvePoint(double us_per_byte, bool offloads) const {
  Point point;
  STRATA_TRY(point.tags, Solve(us_per_byte, offloads));
  // What the plan recomputes: what is neither saved nor unneeded, from backward's readers up.
  IdVector<NodeId, bool> needed(bytes_.size());
  const std::vector<NodeId> order = graph_.nodes().Snapshot();
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    if (!IsForward(graph_, *node) || graph_.node(*node).kind != NodeKind::kCall) continue;
    bool is_needed = is_read_[*node];
    ForEachReader(graph_, *node, [&](NodeId reader) {
      is_needed |= IsForward(graph_, reader) && needed[reader] &&
                   point.tags[reader] == MemoryTag::kMustRecompute;
    });
    needed[*node] = is_needed;
    if (!is_needed) continue;
    const auto bytes = static_cast<double>(std::max<int64_t>(bytes_[*node], 0));
    switch (point.tags[*node]) {
      case MemoryTag::kMustSave:
        point.bytes += bytes;
        break;
      case MemoryTag::kMustCpuOffload:
        point.us += bytes * costs_.offload_us_per_byte;
        break;
      default:
        point.us += costs_.RecomputeUs(*node);
    }
  }
  return point;
}

Status SaveNetwork::Refine(const Point& left, const Point& right, bool offloads,
                           std::vector<Point>& between) const {
  if (between.size() >= kMostPlans || left.bytes <= right.bytes || right.us <= left.us) return Ok();
  const double price = (right.us - left.us) / (left.bytes - right.bytes);
  STRATA_TRY(const Point middle, SolvePoint(price, offloads));
  const auto weight = [&](const Point& point) { return point.us + price * point.bytes; };
  const bool is_new = middle.tags != left.tags && middle.tags != right.tags;
  if (!is_new || weight(middle) >= weight(left) * (1 - 1e-9)) return Ok();
  STRATA_RETURN_IF_ERROR(Refine(left, middle, offloads, between));
  between.push_back(middle);
  return Refine(middle, right, offloads, between);
}

Result<std::vector<MemoryPlanTags>> SaveNetwork::Front(bool offloads) const {
  STRATA_TRY(Point most, SolvePoint(0, /*offloads=*/false));
  STRATA_TRY(Point fewest, SolvePoint(1e6, offloads));
  std::vector<Point> points = {most};
  std::vector<Point> between;
  STRATA_RETURN_IF_ERROR(Refine(most, fewest, offloads, between));
  points.insert(points.end(), between.begin(), between.end());
  if (fewest.tags != most.tags) points.push_back(std::move(fewest));
  std::vector<MemoryPlanTags> plans;
  for (Point& point : points)
    plans.push_back(std::move(point.tags));
  return plans;
}

}  // namespace strata
