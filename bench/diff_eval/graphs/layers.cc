#include "bench/diff_eval/graphs/layers.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "ir/module.h"

namespace strata::bench {
namespace {

/// 3 of `model.layers.3.attention.wq`: its first component that is a number.
std::optional<int> NumberIn(std::string_view path) {
  while (!path.empty()) {
    const size_t end = std::min(path.find('.'), path.size());
    int number = 0;
    const auto [rest, error] = std::from_chars(path.data(), path.data() + end, number);
    if (error == std::errc() && rest == path.data() + end) return number;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return std::nullopt;
}

class LayerFinder {
 public:
  explicit LayerFinder(const Graph& graph)
      : graph_(graph), layer_of_(static_cast<size_t>(graph.node_bound()), -1) {}

  std::vector<Layer> Run() {
    std::map<int, std::vector<NodeId>> members;
    for (NodeId id : graph_.nodes()) {
      if (graph_.node(id).kind != NodeKind::kCall) continue;
      const auto number = NumberIn(graph_.module().str(graph_.node(id).module));
      if (number) members[*number].push_back(id);
    }
    for (const auto& [number, nodes] : members) {
      for (NodeId id : nodes)
        layer_of_[static_cast<size_t>(id.index)] = static_cast<int>(layers_.size());
      layers_.push_back({nodes, {}, {}, {}, {}, {}, {}});
    }
    if (!Link()) return {};
    for (size_t i = 0; i < layers_.size(); ++i)
      SplitOffBackward(layers_[i]);
    FindInputs();
    return std::move(layers_);
  }

 private:
  int LayerOf(NodeId id) const { return layer_of_[static_cast<size_t>(id.index)]; }

  /// Finds the values that go from layer to layer. False: they are not a chain.
  bool Link() {
    for (NodeId id : graph_.nodes()) {
      const int user = LayerOf(id);
      bool is_chain = true;
      if (user < 0) continue;
      graph_.ForEachOperand(id, [&](ValueId value) {
        const int def = LayerOf(graph_.value(value).def);
        if (def < 0 || def == user) return;
        if (def == user - 1) {
          is_chain &= Join(layers_[static_cast<size_t>(def)].out, value) &&
                      Join(layers_[static_cast<size_t>(user)].in, value);
        } else if (def == user + 1) {
          is_chain &= Join(layers_[static_cast<size_t>(def)].grad_out, value) &&
                      Join(layers_[static_cast<size_t>(user)].grad_in, value);
        } else {
          is_chain = false;
        }
      });
      if (!is_chain) return false;
    }
    return true;
  }

  static bool Join(ValueId& known, ValueId value) {
    if (!known.valid()) known = value;
    return known == value;
  }

  /// The backward pass of a layer: what needs the gradient.
  void SplitOffBackward(Layer& layer) const {
    std::set<NodeId> backward;
    for (NodeId id : layer.forward) {
      bool needs = false;
      graph_.ForEachOperand(id, [&](ValueId value) {
        needs |= value == layer.grad_in || backward.contains(graph_.value(value).def);
      });
      if (needs) backward.insert(id);
    }
    layer.backward.assign(layer.forward.begin(), layer.forward.end());
    std::erase_if(layer.backward, [&](NodeId id) { return !backward.contains(id); });
    std::erase_if(layer.forward, [&](NodeId id) { return backward.contains(id); });
  }

  void FindInputs() {
    for (NodeId id : graph_.placeholders()) {
      int layer = -1;
      bool is_one = graph_.HasUses(id);
      for (Use use : graph_.uses(graph_.result(id))) {
        const int user = LayerOf(use.user);
        is_one &= user >= 0 && (layer < 0 || layer == user);
        layer = user;
      }
      if (is_one) layers_[static_cast<size_t>(layer)].inputs.push_back(id);
    }
  }

  const Graph& graph_;
  std::vector<int> layer_of_;  // by node
  std::vector<Layer> layers_;
};

}  // namespace

std::vector<Layer> FindLayers(const Graph& graph) {
  return LayerFinder(graph).Run();
}

}  // namespace strata::bench
