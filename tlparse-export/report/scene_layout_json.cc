#include "tlparse-export/report/scene_layout_json.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "base/id.h"

namespace strata {
namespace {

void WriteBlocks(const std::vector<SceneBlock>& blocks, JsonWriter& json) {
  json.Key("blocks").BeginArray();
  for (const SceneBlock& block : blocks) {
    json.BeginObject();
    if (!block.clusters.empty()) {
      json.Key("clusters").BeginArray();
      for (ClusterId cluster : block.clusters)
        json.Int(cluster.index);
      json.EndArray();
    } else {
      // Nodes of a block rise by small steps, so their differences repeat from layer to layer.
      int32_t last = 0;
      json.Field("rows", block.rows).Key("places").BeginArray();
      for (const ScenePlace& p : block.places) {
        json.Int(p.node.index - std::exchange(last, p.node.index)).Int(p.backward ? 1 : 0);
        json.Int(p.row).Int(p.x);
      }
      json.EndArray();
    }
    json.EndObject();
  }
  json.EndArray();
}

}  // namespace

void WriteEdges(const Scene& scene, JsonWriter& json) {
  json.Key("edges").BeginArray();
  for (const IdRange<SceneEdgeId>& edges : EdgesTo(scene)) {
    json.Int(static_cast<int64_t>(edges.size()));
    for (SceneEdgeId id : edges) {
      const SceneEdge& edge = scene.edges[id];
      json.Int(edge.to.index - edge.from.index).Int(static_cast<int64_t>(edge.status));
    }
  }
  json.EndArray();
}

void WriteClusters(const Scene& scene, Texts& names, JsonWriter& json) {
  json.Field("two_lanes", scene.has_backward);
  json.Key("clusters").BeginArray();
  for (const SceneCluster& c : scene.clusters) {
    json.BeginObject().Field("path", names.Add(c.path)).Field("label", names.Add(c.label));
    json.Field("parent", c.parent.index);
    if (c.repeats > 0) json.Field("repeats", c.repeats);
    if (c.joins_previous) json.Field("joins", true);
    json.Key("counts").BeginArray();
    for (int32_t count : {c.counts.nodes, c.counts.added, c.counts.removed, c.counts.changed,
                          c.counts.moved, c.counts.derived}) {
      json.Int(count);
    }
    json.EndArray();
    json.Key("range").BeginArray().Int(c.subtree_begin).Int(c.subtree_end).EndArray();
    if (!c.skips.empty()) {
      json.Key("skips").BeginArray();
      for (const SceneSkip& skip : c.skips) {
        json.Int(skip.from).Int(skip.to).Int(skip.backward ? 1 : 0);
        json.Int(static_cast<int64_t>(skip.status));
      }
      json.EndArray();
    }
    WriteBlocks(c.blocks, json);
    json.EndObject();
  }
  json.EndArray();
  int32_t last = 0;
  json.Key("order").BeginArray();
  for (SceneNodeId node : scene.by_cluster)
    json.Int(node.index - std::exchange(last, node.index));
  json.EndArray();
}

}  // namespace strata
