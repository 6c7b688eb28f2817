#include "prove/layers/layers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "ir/module.h"
#include "ir/ops.h"
#include "ir/row_placement.h"
#include "passes/placement/placement.h"
#include "prove/chunks.h"
#include "prove/evaluation/evaluator.h"
#include "prove/evaluation/storage_sets.h"
#include "prove/layers/node_comparison.h"
#include "prove/values/call.h"

namespace strata::prove {
namespace {

constexpr int32_t kNoLayer = -1;

/// "layers.3" of "layers.3.attention.wq"; "": no part of the path is a number.
std::string_view NumberedModule(std::string_view path) {
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const bool is_number =
        !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (is_number) return path.substr(0, end);
    begin = end + 1;
  }
  return {};
}

/// Finds which values of one layer are those of another.
class LayerComparison {
 public:
  LayerComparison(const LayeredPair& pair, const Layer& from, const Layer& to)
      : pair_(pair), from_(from), to_(to) {}

  bool Run() {
    if (from_.inputs != to_.inputs || from_.outputs != to_.outputs) return false;
    for (const Side side : kSides)
      if (from_.nodes[side].size() != to_.nodes[side].size()) return false;
    return std::ranges::all_of(kSides, [&](Side side) { return IsSameOn(side); });
  }

 private:
  bool IsSameOn(Side side) {
    const Graph& graph = pair_.graph(side);
    NodeComparison nodes(graph, graph,
                         [&](ValueId x, ValueId y) { return IsSameOperand(side, x, y); });
    nodes_ = &nodes;
    for (size_t i = 0; i < from_.nodes[side].size(); ++i) {
      const NodeId x = from_.nodes[side][i], y = to_.nodes[side][i];
      if (!nodes.IsSame(x, y) || !HaveSamePartners(side, x, y)) return false;
    }
    return true;
  }

  bool IsIn(const Layer& layer, Side side, NodeId node) const {
    const int32_t index = pair_.LayerOf(side, node);
    return index != kNoLayer && &pair_.layers()[static_cast<size_t>(index)] == &layer;
  }

  bool HaveSamePartners(Side side, NodeId x, NodeId y) const {
    const NodeId p = pair_.PartnerOf(side, x), q = pair_.PartnerOf(side, y);
    if (!p.valid() || !q.valid()) return p.valid() == q.valid();
    const Side other = side == kBefore ? kAfter : kBefore;
    return IsIn(from_, other, p) && IsIn(to_, other, q) &&
           pair_.PlaceOf(other, p) == pair_.PlaceOf(other, q);
  }

  bool IsSameOperand(Side side, ValueId x, ValueId y) {
    const Graph& graph = pair_.graph(side);
    const NodeId p = graph.value(x).def, q = graph.value(y).def;
    if (IsIn(from_, side, p) || IsIn(to_, side, q)) {
      return IsIn(from_, side, p) && IsIn(to_, side, q) &&
             pair_.PlaceOf(side, p) == pair_.PlaceOf(side, q) &&
             graph.result_index(x) == graph.result_index(y);
    }
    if (x == y) {
      const auto given = pair_.GivenFor(side, x);
      return Record(side, x, y) && (!given || Record(kBefore, given->before, given->before));
    }
    if (graph.value(x).type != graph.value(y).type) return false;
    const auto a = pair_.GivenFor(side, x), b = pair_.GivenFor(side, y);
    if (a && b) return Record(side, x, y) && Record(kBefore, a->before, b->before);
    return IsSameOutside(side, x, y);
  }

  /// What other modules compute is the same if the pass made it, as redistributions at the end of a
  /// layer, and if it is computed alike: then it is as if the layers that read it computed it.
  bool IsSameOutside(Side side, ValueId x, ValueId y) {
    const Graph& graph = pair_.graph(side);
    const NodeId p = graph.value(x).def, q = graph.value(y).def;
    for (const auto& [value, node] : {std::pair(x, p), std::pair(y, q)}) {
      if (graph.node(node).kind != NodeKind::kCall || pair_.PartnerOf(side, node).valid() ||
          pair_.IsWritten(side, value) || DrawsNumbers(graph.op(node)))
        return false;
    }
    if (const auto known = values_[side].find(x.index); known != values_[side].end())
      return known->second == y;
    return graph.result_index(x) == graph.result_index(y) && nodes_->IsSame(p, q) &&
           Record(side, x, y);
  }

  /// Equal values of `from` have to be equal ones of `to`.
  bool Record(Side side, ValueId x, ValueId y) {
    return values_[side].emplace(x.index, y).first->second == y;
  }

  const LayeredPair& pair_;
  const Layer &from_, &to_;
  std::array<std::unordered_map<int32_t, ValueId>, 2> values_;
  NodeComparison* nodes_ = nullptr;  // of the side that is compared
};

}  // namespace

LayeredPair::LayeredPair(const Graph& before, const Graph& after) : graphs_({&before, &after}) {
  if (IsLowered(after) && !IsLowered(before)) {
    auto mesh = Mesh::Parse(after.attribute(after.output(), kMeshAttribute));
    mesh_ = mesh ? *std::move(mesh) : Mesh();
  }
  FindLayers();
  FindPartners();
  for (const Side side : kSides)
    FindWritten(side);
  for (const Side side : kSides)
    alike_.emplace_back(graph(side));
  FindSlots();
}

void LayeredPair::FindLayers() {
  std::map<std::string, int32_t, std::less<>> indices;
  for (const Side side : kSides) {
    const Graph& of_side = graph(side);
    layer_of_[side].assign(static_cast<size_t>(of_side.node_bound()), kNoLayer);
    place_of_[side].assign(static_cast<size_t>(of_side.node_bound()), 0);
    for (const NodeId node : of_side.nodes()) {
      const std::string_view module =
          NumberedModule(of_side.module().str(of_side.node(node).module));
      if (module.empty() || of_side.node(node).kind == NodeKind::kOutput) continue;
      auto found = indices.find(module);
      if (found == indices.end()) {
        found = indices.emplace(module, static_cast<int32_t>(layers_.size())).first;
        layers_.push_back(
            {.module = std::string(module), .nodes = {}, .inputs = {}, .outputs = {}});
      }
      Layer& layer = layers_[static_cast<size_t>(found->second)];
      // What it draws depends on all draws before it.
      layer.is_single = layer.is_single || DrawsNumbers(of_side.op(node));
      std::vector<NodeId>& nodes = layer.nodes[side];
      layer_of_[side][Index(node)] = found->second;
      place_of_[side][Index(node)] = static_cast<int32_t>(nodes.size());
      nodes.push_back(node);
    }
  }
}

void LayeredPair::FindPartners() {
  std::unordered_map<uint64_t, NodeId> by_id;
  for (const Side side : kSides)
    partner_of_[side].assign(static_cast<size_t>(graph(side).node_bound()), NodeId());
  for (const NodeId node : graph(kBefore).nodes())
    by_id.emplace(static_cast<uint64_t>(graph(kBefore).node(node).stable_id), node);
  for (const NodeId node : graph(kAfter).nodes()) {
    const auto found = by_id.find(static_cast<uint64_t>(graph(kAfter).node(node).stable_id));
    if (found == by_id.end() || IsNewChunk(graph(kBefore), found->second, graph(kAfter), node))
      continue;
    partner_of_[kAfter][Index(node)] = found->second;
    partner_of_[kBefore][Index(found->second)] = node;
  }
}

std::set<int32_t> LayeredPair::FixedBeforeLayers(Side side, StorageSets& storages) const {
  const Graph& of_side = graph(side);
  std::set<int32_t> seen, written, fixed;  // by layers; by nodes of no layer
  for (const NodeId node : of_side.nodes()) {
    for (const ValueId value : WrittenBy(of_side, node)) {
      const int32_t storage = storages.Find(value);
      const bool is_early = LayerOf(side, node) == kNoLayer && !seen.contains(storage);
      is_early ? fixed.insert(storage) : written.insert(storage);
    }
    if (LayerOf(side, node) == kNoLayer) continue;
    of_side.ForEachOperand(node, [&](ValueId value) { seen.insert(storages.Find(value)); });
    for (size_t i = 0; i < of_side.node(node).num_results; ++i)
      seen.insert(storages.Find(of_side.result(node, i)));
  }
  std::erase_if(fixed, [&](int32_t storage) { return written.contains(storage); });
  return fixed;
}

void LayeredPair::FindWritten(Side side) {
  const Graph& of_side = graph(side);
  StorageSets storages(of_side);
  std::set<int32_t> written;
  for (const NodeId node : of_side.nodes())
    for (const ValueId value : WrittenBy(of_side, node))
      written.insert(storages.Find(value));
  const std::set<int32_t> fixed = FixedBeforeLayers(side, storages);
  is_written_[side].assign(static_cast<size_t>(of_side.value_bound()), false);
  std::map<int32_t, std::set<int32_t>> readers;  // layers by storage
  const auto visit = [&](NodeId node, ValueId value) {
    const int32_t storage = storages.Find(value);
    if (!written.contains(storage)) return;
    is_written_[side][static_cast<size_t>(value.index)] = true;
    // Before the last write no layer reads it: to layers it is memory that nothing writes to.
    if (!fixed.contains(storage)) readers[storage].insert(LayerOf(side, node));
  };
  for (const NodeId node : of_side.nodes()) {
    of_side.ForEachOperand(node, [&](ValueId value) { visit(node, value); });
    for (size_t i = 0; i < of_side.node(node).num_results; ++i)
      visit(node, of_side.result(node, i));
  }
  for (const auto& [storage, layers] : readers) {
    if (layers.size() < 2) continue;
    for (const int32_t layer : layers)
      if (layer != kNoLayer) layers_[static_cast<size_t>(layer)].is_single = true;
  }
}

void LayeredPair::FindSlots() {
  const Graph &before = graph(kBefore), &after = graph(kAfter);
  const auto add_all = [&](const std::vector<ValueId>& from, const std::vector<ValueId>& to,
                           std::vector<LayerSlot> Layer::* slots) {
    for (size_t i = 0; i < std::max(from.size(), to.size()); ++i)
      AddSlot(i < from.size() ? from[i] : ValueId(), i < to.size() ? to[i] : ValueId(), slots);
  };
  const auto inputs_of = [](const Graph& of) {
    std::vector<ValueId> values;
    for (const NodeId node : of.placeholders())
      values.push_back(of.result(node));
    return values;
  };
  add_all(inputs_of(before), inputs_of(after), &Layer::inputs);
  if (before.output().valid() && after.output().valid())
    add_all(before.operands(before.output()), after.operands(after.output()), &Layer::outputs);
}

void LayeredPair::AddSlot(ValueId before, ValueId after, std::vector<LayerSlot> Layer::* slots) {
  std::array<int32_t, 2> layers = {kNoLayer, kNoLayer};
  LayerSlot slot;
  for (const Side side : kSides) {
    const ValueId value = side == kBefore ? before : after;
    if (!value.valid()) continue;
    const NodeId def = graph(side).value(value).def;
    layers[side] = LayerOf(side, def);
    slot.places[side] = PlaceOf(side, def);
    slot.results[side] = graph(side).result_index(value);
  }
  if (layers[kBefore] != layers[kAfter]) {
    for (const int32_t layer : layers)
      if (layer != kNoLayer) layers_[static_cast<size_t>(layer)].is_single = true;
  } else if (layers[kBefore] != kNoLayer) {
    (layers_[static_cast<size_t>(layers[kBefore])].*slots).push_back(slot);
  }
}

std::optional<GivenValue> LayeredPair::GivenFor(Side side, ValueId value) const {
  std::optional<GivenValue> given = ComparedPair(side, value);
  // What the pass made is compared where it is equal to what was there.
  if (!given) given = ComparedPair(side, FirstAlike(side, value));
  if (!given) return std::nullopt;
  const auto first = ComparedPair(kBefore, FirstAlike(kBefore, given->before));
  return first ? first : given;
}

std::optional<GivenValue> LayeredPair::ComparedPair(Side side, ValueId value) const {
  const uint32_t index = graph(side).result_index(value);
  const Side other = side == kBefore ? kAfter : kBefore;
  const NodeId partner = PartnerOf(side, graph(side).value(value).def);
  if (!partner.valid() || index >= graph(other).node(partner).num_results) return std::nullopt;
  const ValueId twin = graph(other).result(partner, index);
  const GivenValue given = side == kBefore ? GivenValue{value, twin} : GivenValue{twin, value};
  if (!IsCompared(given.before, given.after)) return std::nullopt;
  return given;
}

bool LayeredPair::IsCompared(ValueId before, ValueId after) const {
  for (const Side side : kSides) {
    const ValueId value = side == kBefore ? before : after;
    const Graph& of_side = graph(side);
    const TypeId id = of_side.value(value).type;
    if (!id.valid() || IsWritten(side, value)) return false;
    const Type& type = of_side.module().types()[id];
    if (type.kind != TypeKind::kTensor || type.dtype == DType::kUnknown ||
        DomainOf(type.dtype) == Domain::kInteger)
      return false;
    for (const DimId size : type.sizes)
      if (!of_side.module().dims().AsConst(size)) return false;
    // A result in flight has no elements yet.
    const std::string_view op = of_side.op(of_side.value(value).def);
    if (op.starts_with(kLaunchPrefix) && BaseName(op) != "wait_tensor") return false;
  }
  if (!mesh_) return true;
  // Parts of the same sizes on all ranks: others are not compared, or not whole.
  const Module& module = graph(kBefore).module();
  const Type& type = module.types()[graph(kBefore).value(before).type];
  std::vector<int64_t> sizes;
  for (const DimId size : type.sizes)
    sizes.push_back(*module.dims().AsConst(size));
  for (size_t axis = 0; axis < type.placements.size(); ++axis) {
    const Placement& placement = type.placements[axis];
    if (placement.kind == Placement::Kind::kReplicate) continue;
    if (!IsShard(placement) || IsRows(placement) || IsBlocked(placement)) return false;
    int64_t& size = sizes[static_cast<size_t>(placement.dim)];
    const int64_t count = mesh_->axes()[axis].size;
    if (size % count != 0) return false;
    size /= count;
  }
  return true;
}

bool IsSameLayer(const LayeredPair& pair, const Layer& from, const Layer& to) {
  return LayerComparison(pair, from, to).Run();
}

}  // namespace strata::prove
