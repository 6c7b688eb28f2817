#include "tlparse-export/report/scene_layout_json.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace strata {
namespace {

void WriteBlocks(const std::vector<SceneBlock>& blocks, JsonWriter& json) {
  json.Key("blocks").BeginArray();
  for (const SceneBlock& block : blocks) {
    json.BeginObject();
    if (!block.clusters.empty()) {
      json.Key("clusters").BeginArray();
      for (int32_t cluster : block.clusters)
        json.Int(cluster);
      json.EndArray();
    } else {
      // Nodes of a block rise by small steps, so their differences repeat from layer to layer.
      int32_t last = 0;
      json.Field("rows", block.rows).Key("places").BeginArray();
      for (const ScenePlace& p : block.places) {
        json.Int(p.node - std::exchange(last, p.node)).Int(p.backward ? 1 : 0);
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
  size_t next = 0;
  for (size_t i = 0; i < scene.nodes.size(); ++i) {
    size_t end = next;
    while (end < scene.edges.size() && scene.edges[end].to == static_cast<int32_t>(i))
      ++end;
    json.Int(static_cast<int64_t>(end - next));
    for (; next < end; ++next) {
      const SceneEdge& edge = scene.edges[next];
      json.Int(edge.to - edge.from).Int(static_cast<int64_t>(edge.status));
    }
  }
  json.EndArray();
}

void WriteClusters(const Scene& scene, Texts& names, JsonWriter& json) {
  json.Field("two_lanes", scene.has_backward);
  json.Key("clusters").BeginArray();
  for (const SceneCluster& c : scene.clusters) {
    json.BeginObject().Field("path", names.Add(c.path)).Field("label", names.Add(c.label));
    json.Field("parent", c.parent);
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
  for (int32_t node : scene.by_cluster)
    json.Int(node - std::exchange(last, node));
  json.EndArray();
}

}  // namespace strata
