#include "bench/diff_eval/graphs/layers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "bench/diff_eval/mutations/mutator.h"

namespace strata::bench {
namespace {

std::set<NodeId> NodesOf(const Layer& layer) {
  std::set<NodeId> nodes(layer.forward.begin(), layer.forward.end());
  nodes.insert(layer.backward.begin(), layer.backward.end());
  return nodes;
}

}  // namespace

/// Inner layers that differ from their neighbours: results are read by the neighbours, by
/// the layer itself, or returned.
std::vector<size_t> Mutator::InnerLayers(const std::vector<Layer>& layers) const {
  std::vector<size_t> inner;
  for (size_t k = 0; k < layers.size(); ++k) {
    const Layer& layer = layers[k];
    const std::set<NodeId> nodes = NodesOf(layer);
    const bool is_closed = std::ranges::all_of(nodes, [&](NodeId id) {
      for (size_t i = 0; i < graph_.node(id).num_results; ++i) {
        const ValueId value = graph_.result(id, i);
        if (value == layer.out || value == layer.grad_out) continue;
        for (Use use : graph_.uses(value)) {
          if (!nodes.contains(use.user) && use.user != graph_.output()) return false;
        }
      }
      return true;
    });
    const bool is_chain = layer.in.valid() && layer.out.valid() &&
                          layer.grad_in.valid() == layer.grad_out.valid() &&
                          layer.backward.empty() != layer.grad_in.valid();
    if (is_chain && is_closed) inner.push_back(k);
  }
  return inner;
}

std::vector<StableId> Mutator::RolesOf(const Layer& layer) const {
  std::vector<StableId> roles;
  for (const auto* nodes : {&layer.forward, &layer.backward, &layer.inputs}) {
    for (NodeId id : *nodes)
      roles.push_back(IdOf(id));
  }
  return roles;
}

/// Users outside of `inside` read another value; what is returned stays.
void Mutator::RedirectOutside(ValueId from, ValueId to, const std::set<NodeId>& inside) {
  for (Use use : UsesOf(from)) {
    if (!inside.contains(use.user) && use.user != graph_.output()) rewriter_.ReplaceUse(use, to);
  }
}

/// The layer goes, and its inputs and results with it; its neighbours are joined.
void Mutator::DropLayer() {
  const std::vector<Layer> layers = FindLayers(graph_);
  const std::vector<size_t> inner = InnerLayers(layers);
  if (inner.empty() || !ReturnsList()) return;
  const size_t dropped = inner[Random(inner.size())];
  const Layer& layer = layers[dropped];
  for (size_t k = 0; k < layers.size(); ++k) {
    lineage_.layers_before.push_back(RolesOf(layers[k]));
    if (k != dropped) lineage_.layers_after.push_back(RolesOf(layers[k]));
  }
  const std::set<NodeId> nodes = NodesOf(layer);
  Begin();
  RedirectOutside(layer.out, layer.in, nodes);
  if (layer.grad_out.valid()) RedirectOutside(layer.grad_out, layer.grad_in, nodes);
  std::vector<Arg> results = Results();
  std::erase_if(results, [&](const Arg& arg) {
    return arg.is_value() && nodes.contains(graph_.value(arg.value()).def);
  });
  SetResults(results);
  for (const auto* part : {&layer.backward, &layer.forward}) {
    for (size_t i = part->size(); i-- > 0;) {
      Mark((*part)[i]);
      rewriter_.Erase((*part)[i]);
    }
  }
  for (NodeId input : layer.inputs) {
    Mark(input);
    rewriter_.Erase(input);
  }
}

/// A copy of a layer behind it: with inputs of its own, with those of the layer, or with inputs of
/// its own that are wider inside.
void Mutator::AddLayer() {
  const std::vector<Layer> layers = FindLayers(graph_);
  const std::vector<size_t> inner = InnerLayers(layers);
  if (inner.empty() || !ReturnsList()) return;
  const size_t copied = inner[Random(inner.size())];
  const Layer& layer = layers[copied];
  enum class Inputs : uint8_t { kOwn, kShared, kWider };
  const auto how = static_cast<Inputs>(Random(3));
  const int64_t width = how == Inputs::kWider ? InnerWidth(layer) : 0;
  if (how == Inputs::kWider && width == 0) return;

  const std::set<NodeId> nodes = NodesOf(layer);
  Begin();
  std::map<ValueId, ValueId> copies{{layer.in, layer.out}};
  Layer copy{{}, {}, {}, layer.out, {}, layer.grad_in, {}};
  if (how != Inputs::kShared && !layer.inputs.empty()) AddInputsOfCopy(layer, width, copies, copy);
  rewriter_.SetCursorAfter(graph_.value(layer.out).def);
  for (NodeId id : layer.forward)
    copy.forward.push_back(CloneInto(id, width, copies));
  copy.out = copies.at(layer.out);
  if (!layer.backward.empty()) {
    rewriter_.SetCursorBefore(layer.backward.front());
    for (NodeId id : layer.backward)
      copy.backward.push_back(CloneInto(id, width, copies));
    copy.grad_out = copies.at(layer.grad_out);
    RedirectInside(layer.grad_in, copy.grad_out, layer.backward);
  }
  std::set<NodeId> both = NodesOf(copy);
  both.insert(nodes.begin(), nodes.end());
  RedirectOutside(layer.out, copy.out, both);
  AddResultsOfCopy(nodes, copies, how == Inputs::kShared);

  for (size_t k = 0; k < layers.size(); ++k) {
    lineage_.layers_before.push_back(RolesOf(layers[k]));
    lineage_.layers_after.push_back(RolesOf(layers[k]));
    if (k == copied) lineage_.layers_after.push_back(RolesOf(copy));
  }
}

/// Inputs of a layer's copy, behind those of the layer, half as wide again where they have `width`.
void Mutator::AddInputsOfCopy(const Layer& layer, int64_t width, std::map<ValueId, ValueId>& copies,
                              Layer& copy) {
  rewriter_.SetCursorAfter(layer.inputs.back());
  for (NodeId input : layer.inputs) {
    NodeSpec spec;
    spec.kind = NodeKind::kPlaceholder;
    const std::string name = "copied_" + std::to_string(input.index);
    spec.name = name;
    const NodeId made = rewriter_.Create(spec, From::Source());
    rewriter_.SetType(graph_.result(made), Wider(TypeIdOf(input), width));
    Mark(made);
    copy.inputs.push_back(made);
    copies[graph_.result(input)] = graph_.result(made);
  }
}

/// A copy at the cursor that reads copies of what the node reads; its results become copies, too.
NodeId Mutator::CloneInto(NodeId id, int64_t width, std::map<ValueId, ValueId>& copies) {
  const NodeId made = rewriter_.Clone(id);
  for (ValueId operand : graph_.operands(id)) {
    const auto found = copies.find(operand);
    if (found != copies.end()) RedirectInside(operand, found->second, {made});
  }
  for (size_t i = 0; i < graph_.node(id).num_results; ++i) {
    const ValueId from = graph_.result(id, i), to = graph_.result(made, i);
    copies[from] = to;
    if (graph_.value(from).name.valid() && graph_.node(id).returns_tuple) {
      rewriter_.SetElementName(to, "copied_element_" + std::to_string(to.index));
    }
    if (graph_.value(to).type.valid()) {
      rewriter_.SetType(to, Wider(graph_.value(to).type, width));
    }
  }
  if (width != 0) WidenLiterals(made, width);
  Mark(made);
  return made;
}

/// A layer's copy returns what the layer does: behind it, or, where both read one input, as a sum.
void Mutator::AddResultsOfCopy(const std::set<NodeId>& nodes,
                               const std::map<ValueId, ValueId>& copies, bool sums) {
  const std::vector<int32_t> order = OrderOf(graph_);
  const auto place = [&](ValueId value) {
    return order[static_cast<size_t>(graph_.value(value).def.index)];
  };
  std::vector<Arg> results, waiting;
  const auto add_waiting = [&] {
    results.insert(results.end(), waiting.begin(), waiting.end());
    waiting.clear();
  };
  for (const Arg& arg : Results()) {
    if (!arg.is_value() || !nodes.contains(graph_.value(arg.value()).def)) {
      add_waiting();
      results.push_back(arg);
      continue;
    }
    const ValueId value = arg.value(), copy = copies.at(value);
    if (!sums || !TensorOf(value)) {
      results.push_back(arg);
      waiting.emplace_back(copy);
      continue;
    }
    const NodeId later = graph_.value(place(value) > place(copy) ? value : copy).def;
    rewriter_.SetCursorAfter(later);
    const Arg args[] = {Arg(value), Arg(copy)};
    const NodeId sum = Make("aten.add.Tensor", args, graph_.value(value).type, later);
    Mark(sum);
    results.emplace_back(graph_.result(sum));
  }
  add_waiting();
  SetResults(results);
}

/// The layer changes its place with the next ones.
void Mutator::MoveLayer() {
  const std::vector<Layer> layers = FindLayers(graph_);
  const std::vector<size_t> inner = InnerLayers(layers);
  if (inner.size() < 2) return;
  const size_t first = Random(inner.size() - 1);
  const size_t last = std::min(first + 1 + Random(2), inner.size() - 1);
  if (inner[last] - inner[first] != last - first) return;
  const Layer& layer = layers[inner[first]];
  const Layer& behind = layers[inner[last]];  // the layer goes behind this one
  const std::set<NodeId> nodes = NodesOf(layer);
  Begin();
  // Who reads the results of both now; then they change.
  const auto outside = [&](ValueId value, const std::set<NodeId>& inside) {
    std::vector<Use> uses = UsesOf(value);
    std::erase_if(
        uses, [&](Use use) { return inside.contains(use.user) || use.user == graph_.output(); });
    return uses;
  };
  const auto redirect = [&](const std::vector<Use>& uses, ValueId to) {
    for (Use use : uses)
      rewriter_.ReplaceUse(use, to);
  };
  const std::vector<Use> read_layer = outside(layer.out, nodes);
  const std::vector<Use> read_behind = outside(behind.out, NodesOf(behind));
  for (const auto* part : {&layer.forward, &layer.backward})
    RedirectInside(layer.in, behind.out, *part);
  redirect(read_layer, layer.in);
  redirect(read_behind, layer.out);
  NodeId after_forward = graph_.node(graph_.value(behind.out).def).next;
  while (nodes.contains(after_forward))
    after_forward = graph_.node(after_forward).next;
  for (NodeId id : layer.forward) {
    rewriter_.MoveBefore(id, after_forward);
    Mark(id);
  }
  if (layer.backward.empty()) return;
  const std::vector<Use> read_gradient = outside(layer.grad_out, nodes);
  const NodeId before_backward = behind.backward.front();
  RedirectInside(layer.grad_in, behind.grad_in, layer.backward);
  RedirectInside(behind.grad_in, layer.grad_out, behind.backward);
  // Seen from the layer's old place, its gradient comes from where it was read before.
  redirect(read_gradient, layer.grad_in);
  for (NodeId id : layer.backward) {
    rewriter_.MoveBefore(id, before_backward);
    Mark(id);
  }
}

/// A size that a layer has inside and in its inputs, and not where it meets its neighbours: the
/// largest one. 0: there is none.
int64_t Mutator::InnerWidth(const Layer& layer) const {
  const std::optional<Type> outside = TensorOf(layer.out);
  if (!outside) return 0;
  int64_t width = 0;
  for (NodeId id : layer.inputs) {
    const std::optional<Type> type = TensorOf(graph_.result(id));
    if (!type) continue;
    for (DimId size : type->sizes) {
      if (std::ranges::find(outside->sizes, size) != outside->sizes.end()) continue;
      width = std::max(width, module_.dims().AsConst(size).value_or(0));
    }
  }
  return width;
}

/// The type with half as much again where it had `width`; `width` 0: the type.
TypeId Mutator::Wider(TypeId id, int64_t width) {
  if (width == 0 || !id.valid() || module_.types()[id].kind != TypeKind::kTensor) return id;
  Type type = module_.types()[id];
  for (DimId& size : type.sizes) {
    if (module_.dims().AsConst(size) == width) size = module_.dims().Const(width + width / 2);
  }
  for (DimId& stride : type.strides) {
    const int64_t number = module_.dims().AsConst(stride).value_or(0);
    if (number > 0 && number % width == 0) {
      stride = module_.dims().Const(number / width * (width + width / 2));
    }
  }
  return module_.types().Intern(type);
}

void Mutator::WidenLiterals(NodeId id, int64_t width) {
  const auto widen = [&](uint32_t slot) {
    const Arg arg = graph_.slot(slot);
    if (arg.kind() == ArgKind::kInt && arg.as_int() == width) {
      rewriter_.SetSlot(id, slot, Arg::Int(width + width / 2));
    }
  };
  for (uint32_t i = 0; i < graph_.node(id).num_args; ++i) {
    const uint32_t slot = graph_.node(id).args_begin + i;
    const Arg arg = graph_.slot(slot);
    if (arg.kind() == ArgKind::kList) {
      for (uint32_t k = 0; k < arg.span_size(); ++k)
        widen(arg.span_begin() + k);
    } else {
      widen(slot);
    }
  }
}

}  // namespace strata::bench
