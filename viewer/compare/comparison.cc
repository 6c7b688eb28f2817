#include "viewer/compare/comparison.h"

#include <algorithm>
#include <atomic>
#include <span>

#include <fmt/format.h>

#include "base/unicode.h"
#include "diff/diff.h"
#include "diff/graph/parallel.h"
#include "scene/index.h"
#include "scene/open_slabs.h"
#include "scene/words.h"

namespace strata::viewer {

Result<std::shared_ptr<const Comparison>> Comparison::Make(Input input, SharedLanes& lanes,
                                                           const Outdated& outdated) {
  STRATA_TRY(GraphDiff diff, Diff(input.before->graph(input.before_graph),
                                  input.after->graph(input.after_graph), input.options));
  if (outdated) return std::shared_ptr<const Comparison>();
  std::shared_ptr<Comparison> made(new Comparison(std::move(input), std::move(diff)));
  made->title_ = made->input_.title;
  {
    const std::scoped_lock lock(lanes.mutex);
    made->scene_ = MakeScene(made->diff_, {.lanes = &lanes.layouts});
  }
  if (outdated) return std::shared_ptr<const Comparison>();
  AtOnce(
      made->scene_.nodes.size(), [&] { made->IndexNodes(); },
      [&] {
        made->IndexEdges();
        made->MakeBarcodes();
      });
  return std::shared_ptr<const Comparison>(std::move(made));
}

Comparison::Comparison(Input input, GraphDiff diff)
    : id_([] {
        static std::atomic<uint64_t> last{0};
        return ++last;
      }()),
      input_(std::move(input)),
      diff_(std::move(diff)) {}

void Comparison::IndexNodes() {
  node_of_before_.resize(diff_.before.ids().size());
  node_of_after_.resize(diff_.after.ids().size());
  names_.reserve(scene_.nodes.size());
  for (SceneNodeId i : nodes()) {
    const SceneNode& n = node(i);
    if (n.before.valid()) node_of_before_[n.before] = i;
    if (n.after.valid()) node_of_after_[n.after] = i;
    names_.Add(Visible(listing_of(i).name(entity_of(i))));
    if (n.status != SceneStatus::kSame) changes_.push_back(i);
  }
  // A node that exists after the pass goes before a removed one of that name.
  by_name_.reserve(names_.size());
  for (const bool removed : {false, true}) {
    for (SceneNodeId i : nodes()) {
      if ((StatusOf(i) == SceneStatus::kRemoved) == removed) by_name_.try_emplace(NameOf(i), i);
    }
  }
  for (const bool derived : {false, true}) {
    for (SceneNodeId i : changes_) {
      if ((StatusOf(i) == SceneStatus::kDerived) == derived) changes_by_cause_.push_back(i);
    }
  }
  children_ = strata::ChildrenOf(scene_);
  for (ClusterId id : IdsOf(scene_.clusters))
    by_cluster_.try_emplace(scene_.clusters[id].path, id);
}

void Comparison::IndexEdges() {
  inputs_ = EdgesTo(scene_);
  first_output_.assign(scene_.nodes.size() + 1, 0);
  for (const SceneEdge& edge : scene_.edges) {
    ++first_output_[At(edge.from.index) + 1];
    has_added_edges_ |= edge.status == SceneStatus::kAdded;
    has_removed_edges_ |= edge.status == SceneStatus::kRemoved;
  }
  for (size_t i = 1; i < first_output_.size(); ++i)
    first_output_[i] += first_output_[i - 1];
  std::vector<int32_t> next = first_output_;
  outputs_.resize(scene_.edges.size());
  for (SceneEdgeId e : IdsOf(scene_.edges))
    outputs_[At(next[At(scene_.edges[e].from.index)]++)] = e;
}

void Comparison::MakeBarcodes() {
  constexpr size_t kMostTicks = 1024;
  const auto ticks = [&](const std::vector<SceneNodeId>& nodes) {
    std::vector<uint8_t> bits(std::min(nodes.size(), kMostTicks));
    for (size_t i = 0; i < nodes.size(); ++i)
      bits[i * bits.size() / nodes.size()] |=
          static_cast<uint8_t>(1U << static_cast<unsigned>(StatusOf(nodes[i])));
    return bits;
  };
  for (ClusterId id : IdsOf(scene_.clusters)) {
    std::vector<SceneNodeId> forward, backward;
    for (SceneNodeId i : NodesIn(id))
      (node(i).backward ? backward : forward).push_back(i);
    std::ranges::reverse(backward);
    barcodes_.Add({ticks(forward), ticks(backward)});
  }
}

const Listing& Comparison::listing_of(SceneNodeId i) const {
  return node(i).after.valid() ? diff_.after : diff_.before;
}
EntityId Comparison::entity_of(SceneNodeId i) const {
  return node(i).after.valid() ? node(i).after : node(i).before;
}
const Graph& Comparison::graph_of(SceneNodeId i) const {
  return listing_of(i).graph(entity_of(i));
}
const Node& Comparison::ir_node(SceneNodeId i) const {
  return graph_of(i).node(listing_of(i)[entity_of(i)].node);
}

std::string Comparison::NameBefore(SceneNodeId i) const {
  return node(i).before.valid() ? Visible(diff_.before.name(node(i).before)) : std::string();
}

std::string Comparison::OperatorOf(SceneNodeId i) const {
  const std::string_view target = listing_of(i).target(entity_of(i));
  if (!target.empty()) return Visible(target);
  return listing_of(i)[entity_of(i)].kind == EntityKind::kOutput ? "output" : "input";
}

std::string Comparison::LabelOf(SceneNodeId i) const {
  if (StatusOf(i) == SceneStatus::kChanged) {
    for (const FieldDiff& field : PairOf(i)->fields) {
      if (field.path == "target" && field.before && field.after)
        return fmt::format("{} → {}", ShortOperator(Visible(*field.before)),
                           ShortOperator(Visible(*field.after)));
    }
  }
  return ShortOperator(OperatorOf(i));
}

std::string Comparison::TypeOf(SceneNodeId i, bool before) const {
  const bool is_before = before && node(i).before.valid();
  const Listing& listing = is_before ? diff_.before : listing_of(i);
  const EntityId id = is_before ? node(i).before : entity_of(i);
  const ValueId value = listing.value(id);
  const Graph& graph = listing.graph(id);
  if (!value.valid() || !graph.value(value).type.valid()) return "";
  return Visible(graph.module().types().ToString(graph.value(value).type));
}

double Comparison::BytesOf(SceneNodeId i) const {
  const ValueId value = listing_of(i).value(entity_of(i));
  const Graph& graph = graph_of(i);
  if (!value.valid() || !graph.value(value).type.valid()) return 0;
  return static_cast<double>(graph.module().types().Bytes(graph.value(value).type).value_or(0));
}

const NodeStatistics* Comparison::MeasuredOf(SceneNodeId i) const {
  if (!has_measures() || ir_node(i).stable_id == StableId::kNone) return nullptr;
  const auto found = input_.measures->find(static_cast<uint64_t>(ir_node(i).stable_id));
  return found == input_.measures->end() ? nullptr : &found->second;
}

const CostComparison& Comparison::costs() const {
  std::call_once(costs_made_, [&] {
    Result<CostComparison> made = input_.costs ? input_.costs(diff_) : ShapeCosts(diff_);
    costs_ = made ? *std::move(made) : ShapeCosts(diff_);
  });
  return costs_;
}

CostChange Comparison::CostChangeOf(SceneNodeId i) const {
  CostChange change;
  const auto add = [&](const SideCosts& side, EntityId id, double sign) {
    if (!id.valid()) return;
    change.us += sign * side.us[id];
    change.bytes += sign * side.bytes[id];
    change.peak += sign * side.peak[id];
  };
  add(costs().before, node(i).before, -1);
  add(costs().after, node(i).after, 1);
  return change;
}

std::string Comparison::ModuleOf(SceneNodeId i) const {
  return Visible(cluster(node(i).cluster).path);
}

std::string Comparison::PlaceOf(SceneNodeId i) const {
  const LocId loc = ir_node(i).loc;
  if (!loc.valid()) return "";
  const Module& module = graph_of(i).module();
  return fmt::format("{}:{}", Visible(module.str(module.loc(loc).file)), module.loc(loc).line);
}

std::string Comparison::CodeOf(SceneNodeId i) const {
  const LocId loc = ir_node(i).loc;
  if (!loc.valid()) return "";
  const Module& module = graph_of(i).module();
  return Visible(module.str(module.loc(loc).code));
}

const Pair* Comparison::PairOf(SceneNodeId i) const {
  return node(i).pair.valid() ? &diff_.pairs[node(i).pair] : nullptr;
}

std::vector<Comparison::Neighbour> Comparison::InputsOf(SceneNodeId i) const {
  std::vector<Neighbour> inputs;
  for (SceneEdgeId e : inputs_[i])
    inputs.push_back({scene_.edges[e].from, scene_.edges[e].status});
  return inputs;
}

std::vector<Comparison::Neighbour> Comparison::OutputsOf(SceneNodeId i) const {
  std::vector<Neighbour> outputs;
  for (int32_t k = first_output_[At(i.index)]; k < first_output_[At(i.index) + 1]; ++k) {
    const SceneEdge& edge = scene_.edges[outputs_[At(k)]];
    outputs.push_back({edge.to, edge.status});
  }
  return outputs;
}

std::vector<SceneNodeId> Comparison::NodesOf(const Hunk& hunk) const {
  std::vector<SceneNodeId> nodes;
  for (PairId pair : hunk.pairs)
    nodes.push_back(NodeOfAfter(diff_.pairs[pair].after));
  for (EntityId id : hunk.inserted)
    nodes.push_back(NodeOfAfter(id));
  for (EntityId id : hunk.deleted)
    nodes.push_back(NodeOfBefore(id));
  std::ranges::sort(nodes);
  return nodes;
}

SceneNodeId Comparison::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? SceneNodeId() : found->second;
}

ClusterId Comparison::FindCluster(std::string_view path) const {
  const auto found = by_cluster_.find(path);
  return found == by_cluster_.end() ? ClusterId() : found->second;
}

std::vector<SceneNodeId> Comparison::NodesIn(ClusterId id) const {
  const std::span<const SceneNodeId> below = scene_.NodesBelow(cluster(id));
  std::vector<SceneNodeId> nodes(below.begin(), below.end());
  std::ranges::sort(nodes);
  return nodes;
}

}  // namespace strata::viewer
