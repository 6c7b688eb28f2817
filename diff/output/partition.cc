#include "diff/output/partition.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/unicode.h"
#include "diff/graph/statement.h"

namespace strata {
namespace {

/// What a part has of each joint node.
enum class Has : uint8_t { kNothing, kNode, kInput };

IdVector<EntityId, Has> WhatItHas(const GraphDiff& diff) {
  IdVector<EntityId, Has> result(diff.before.ids().size(), Has::kNothing);
  for (const Pair& pair : diff.pairs) {
    const bool is_input = diff.after[pair.after].kind == EntityKind::kInput;
    result[pair.before] = is_input ? Has::kInput : Has::kNode;
  }
  for (const Relation& relation : diff.relations) {
    if (relation.kind == RelationKind::kBecameInput) result[relation.before[0]] = Has::kInput;
    // Merged equals are what the first of them is.
    if (relation.kind != RelationKind::kMerge) continue;
    for (EntityId id : relation.before)
      result[id] = result[relation.before[0]];
  }
  return result;
}

/// A partitioner names an input of backward after the value that forward saves. Where structure
/// does not show which node an input was, or only that an input of the joint graph has its type,
/// that name does.
void AddInputsByName(const GraphDiff& backward, const IdVector<EntityId, Has>& in_forward,
                     IdVector<EntityId, Has>& in_backward) {
  IdVector<EntityId, EntityId> before_of(backward.after.ids().size(), EntityId());
  for (const Pair& pair : backward.pairs)
    before_of[pair.after] = pair.before;
  for (EntityId id : backward.after.ids()) {
    if (backward.after[id].kind != EntityKind::kInput) continue;
    const EntityId named = backward.before.FindName(backward.after.name(id)), other = before_of[id];
    const bool is_open =
        named.valid() && in_backward[named] == Has::kNothing && in_forward[named] == Has::kNode;
    if (!is_open) continue;
    if (other.valid() && backward.before[other].kind != EntityKind::kInput) continue;
    if (other.valid()) in_backward[other] = Has::kNothing;
    in_backward[named] = Has::kInput;
  }
}

struct Part {
  std::string_view key, title;
  std::vector<EntityId> Partition::* nodes;
  bool always_listed;
};
constexpr std::array<Part, 5> kParts = {{
    {"forward_only", "forward only", &Partition::forward_only, false},
    {"backward_only", "backward only", &Partition::backward_only, false},
    {"both", "in both (recomputed)", &Partition::both, true},
    {"saved", "saved", &Partition::saved, true},
    {"neither", "in neither", &Partition::neither, false},
}};

}  // namespace

Partition FindPartition(const GraphDiff& forward, const GraphDiff& backward) {
  const IdVector<EntityId, Has> in_forward = WhatItHas(forward);
  IdVector<EntityId, Has> in_backward = WhatItHas(backward);
  AddInputsByName(backward, in_forward, in_backward);
  Partition partition;
  for (EntityId id : forward.before.ids()) {
    const Has f = in_forward[id], b = in_backward[id];
    if (f != Has::kNothing && b == Has::kInput) partition.saved.push_back(id);
    const EntityKind kind = forward.before[id].kind;
    if (kind == EntityKind::kInput || kind == EntityKind::kOutput) continue;
    if (f == Has::kNode) {
      (b == Has::kNode ? partition.both : partition.forward_only).push_back(id);
    } else {
      (b == Has::kNode ? partition.backward_only : partition.neither).push_back(id);
    }
  }
  return partition;
}

std::string PartitionText(const GraphDiff& forward, const GraphDiff& backward,
                          const PartitionRefs& refs, bool all) {
  const Partition partition = FindPartition(forward, backward);
  const Listing& joint = forward.before;
  std::string out =
      fmt::format("joint     {}  {} nodes\nforward   {}  {} nodes\nbackward  {}  {} nodes\n\n",
                  Visible(refs.joint), joint.size(), Visible(refs.forward), forward.after.size(),
                  Visible(refs.backward), backward.after.size());
  std::string counts;
  for (const Part& part : kParts) {
    const size_t count = (partition.*part.nodes).size();
    if (count == 0 && !part.always_listed) continue;
    counts += fmt::format("{}{} {}", counts.empty() ? "" : " · ", count, part.title);
  }
  out += counts + "\n";
  constexpr size_t kShown = 20;
  for (const Part& part : kParts) {
    const std::vector<EntityId>& nodes = partition.*part.nodes;
    if (nodes.empty() || (!part.always_listed && !all)) continue;
    out += fmt::format("\n{}\n", part.title);
    const size_t shown = all ? nodes.size() : std::min(nodes.size(), kShown);
    for (EntityId id : std::span(nodes).first(shown))
      out += fmt::format("  {}\n", StatementText(joint, id));
    if (shown < nodes.size()) out += fmt::format("  and {} more (--all)\n", nodes.size() - shown);
  }
  return out;
}

std::string PartitionJson(const GraphDiff& forward, const GraphDiff& backward,
                          const PartitionRefs& refs) {
  const Partition partition = FindPartition(forward, backward);
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Break(2).Field("schema", "strata.partition/1");
  json.Break(2).Field("joint", refs.joint).Break(2).Field("forward", refs.forward);
  json.Break(2).Field("backward", refs.backward);
  for (const Part& part : kParts) {
    json.Break(2).Key(part.key).BeginArray();
    for (EntityId id : partition.*part.nodes)
      json.String(forward.before.name(id));
    json.EndArray();
  }
  json.Break(0).EndObject();
  return out + "\n";
}

}  // namespace strata
