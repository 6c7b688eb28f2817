#include "viewer/compare/comparison.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "base/unicode.h"
#include "diff/diff.h"
#include "diff/graph/parallel.h"
#include "scene/open_slabs.h"
#include "scene/words.h"

namespace strata::viewer {
namespace {

size_t At(int32_t index) {
  return static_cast<size_t>(index);
}

}  // namespace

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
  node_of_before_.assign(At(diff_.before.size()), -1);
  node_of_after_.assign(At(diff_.after.size()), -1);
  names_.reserve(scene_.nodes.size());
  for (int32_t i = 0; i < size(); ++i) {
    const SceneNode& n = node(i);
    if (n.before.valid()) node_of_before_[n.before] = i;
    if (n.after.valid()) node_of_after_[n.after] = i;
    names_.push_back(Visible(listing_of(i).name(entity_of(i))));
    if (n.status != SceneStatus::kSame) changes_.push_back(i);
  }
  // A node that exists after the pass goes before a removed one of that name.
  by_name_.reserve(names_.size());
  for (const bool removed : {false, true}) {
    for (int32_t i = 0; i < size(); ++i) {
      if ((StatusOf(i) == SceneStatus::kRemoved) == removed) by_name_.try_emplace(NameOf(i), i);
    }
  }
  for (const bool derived : {false, true}) {
    for (int32_t i : changes_) {
      if ((StatusOf(i) == SceneStatus::kDerived) == derived) changes_by_cause_.push_back(i);
    }
  }
  children_ = strata::ChildrenOf(scene_);
  for (size_t c = 0; c < scene_.clusters.size(); ++c)
    by_cluster_.try_emplace(scene_.clusters[c].path, static_cast<int32_t>(c));
}

void Comparison::IndexEdges() {
  first_input_.assign(scene_.nodes.size() + 1, 0);
  first_output_.assign(scene_.nodes.size() + 1, 0);
  for (const SceneEdge& edge : scene_.edges) {
    ++first_input_[At(edge.to) + 1];
    ++first_output_[At(edge.from) + 1];
    has_added_edges_ |= edge.status == SceneStatus::kAdded;
    has_removed_edges_ |= edge.status == SceneStatus::kRemoved;
  }
  for (size_t i = 1; i < first_input_.size(); ++i) {
    first_input_[i] += first_input_[i - 1];
    first_output_[i] += first_output_[i - 1];
  }
  std::vector<int32_t> next = first_output_;
  output_edge_.resize(scene_.edges.size());
  for (size_t e = 0; e < scene_.edges.size(); ++e)
    output_edge_[At(next[At(scene_.edges[e].from)]++)] = static_cast<int32_t>(e);
}

void Comparison::MakeBarcodes() {
  constexpr size_t kMostTicks = 1024;
  const auto ticks = [&](const std::vector<int32_t>& nodes) {
    std::vector<uint8_t> bits(std::min(nodes.size(), kMostTicks));
    for (size_t i = 0; i < nodes.size(); ++i)
      bits[i * bits.size() / nodes.size()] |=
          static_cast<uint8_t>(1U << static_cast<unsigned>(StatusOf(nodes[i])));
    return bits;
  };
  for (size_t c = 0; c < scene_.clusters.size(); ++c) {
    std::vector<int32_t> forward, backward;
    for (int32_t i : NodesIn(static_cast<int32_t>(c)))
      (node(i).backward ? backward : forward).push_back(i);
    std::ranges::reverse(backward);
    barcodes_.push_back({ticks(forward), ticks(backward)});
  }
}

const Listing& Comparison::listing_of(int32_t i) const {
  return node(i).after.valid() ? diff_.after : diff_.before;
}
EntityId Comparison::entity_of(int32_t i) const {
  return node(i).after.valid() ? node(i).after : node(i).before;
}
const Graph& Comparison::graph_of(int32_t i) const {
  return listing_of(i).graph(entity_of(i));
}
const Node& Comparison::ir_node(int32_t i) const {
  return graph_of(i).node(listing_of(i)[entity_of(i)].node);
}

std::string Comparison::NameBefore(int32_t i) const {
  return node(i).before.valid() ? Visible(diff_.before.name(node(i).before)) : std::string();
}

std::string Comparison::OperatorOf(int32_t i) const {
  const std::string_view target = listing_of(i).target(entity_of(i));
  if (!target.empty()) return Visible(target);
  return listing_of(i)[entity_of(i)].kind == EntityKind::kOutput ? "output" : "input";
}

std::string Comparison::LabelOf(int32_t i) const {
  if (StatusOf(i) == SceneStatus::kChanged) {
    for (const FieldDiff& field : PairOf(i)->fields) {
      if (field.path == "target" && field.before && field.after)
        return fmt::format("{} → {}", ShortOperator(Visible(*field.before)),
                           ShortOperator(Visible(*field.after)));
    }
  }
  return ShortOperator(OperatorOf(i));
}

std::string Comparison::TypeOf(int32_t i, bool before) const {
  const bool is_before = before && node(i).before.valid();
  const Listing& listing = is_before ? diff_.before : listing_of(i);
  const EntityId id = is_before ? node(i).before : entity_of(i);
  const ValueId value = listing.value(id);
  const Graph& graph = listing.graph(id);
  if (!value.valid() || !graph.value(value).type.valid()) return "";
  return Visible(graph.module().types().ToString(graph.value(value).type));
}

double Comparison::BytesOf(int32_t i) const {
  const ValueId value = listing_of(i).value(entity_of(i));
  const Graph& graph = graph_of(i);
  if (!value.valid() || !graph.value(value).type.valid()) return 0;
  return static_cast<double>(graph.module().types().Bytes(graph.value(value).type).value_or(0));
}

const NodeStatistics* Comparison::MeasuredOf(int32_t i) const {
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

CostChange Comparison::CostChangeOf(int32_t i) const {
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

std::string Comparison::ModuleOf(int32_t i) const {
  return Visible(cluster(node(i).cluster).path);
}

std::string Comparison::PlaceOf(int32_t i) const {
  const LocId loc = ir_node(i).loc;
  if (!loc.valid()) return "";
  const Module& module = graph_of(i).module();
  return fmt::format("{}:{}", Visible(module.str(module.loc(loc).file)), module.loc(loc).line);
}

std::string Comparison::CodeOf(int32_t i) const {
  const LocId loc = ir_node(i).loc;
  if (!loc.valid()) return "";
  const Module& module = graph_of(i).module();
  return Visible(module.str(module.loc(loc).code));
}

const Pair* Comparison::PairOf(int32_t i) const {
  return node(i).pair.valid() ? &diff_.pairs[node(i).pair] : nullptr;
}

std::vector<Comparison::Neighbour> Comparison::InputsOf(int32_t i) const {
  std::vector<Neighbour> inputs;
  for (int32_t e = first_input_[At(i)]; e < first_input_[At(i) + 1]; ++e)
    inputs.push_back({scene_.edges[At(e)].from, scene_.edges[At(e)].status});
  return inputs;
}

std::vector<Comparison::Neighbour> Comparison::OutputsOf(int32_t i) const {
  std::vector<Neighbour> outputs;
  for (int32_t k = first_output_[At(i)]; k < first_output_[At(i) + 1]; ++k) {
    const SceneEdge& edge = scene_.edges[At(output_edge_[At(k)])];
    outputs.push_back({edge.to, edge.status});
  }
  return outputs;
}

std::vector<int32_t> Comparison::NodesOf(const Hunk& hunk) const {
  std::vector<int32_t> nodes;
  for (PairId pair : hunk.pairs)
    nodes.push_back(NodeOfAfter(diff_.pairs[pair].after));
  for (EntityId id : hunk.inserted)
    nodes.push_back(NodeOfAfter(id));
  for (EntityId id : hunk.deleted)
    nodes.push_back(NodeOfBefore(id));
  std::ranges::sort(nodes);
  return nodes;
}

int32_t Comparison::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? -1 : found->second;
}

int32_t Comparison::FindCluster(std::string_view path) const {
  const auto found = by_cluster_.find(path);
  return found == by_cluster_.end() ? -1 : found->second;
}

std::vector<int32_t> Comparison::NodesIn(int32_t index) const {
  const SceneCluster& c = cluster(index);
  std::vector<int32_t> nodes(scene_.by_cluster.begin() + c.subtree_begin,
                             scene_.by_cluster.begin() + c.subtree_end);
  std::ranges::sort(nodes);
  return nodes;
}

}  // namespace strata::viewer
