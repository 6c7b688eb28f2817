#include "prove/layers/fewer_layers.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/rewriter.h"
#include "prove/layers/layers.h"

namespace strata::prove {
namespace {

/// For each layer the one that stays in its place; itself: it stays.
std::vector<int32_t> Representatives(const LayeredPair& pair) {
  const std::vector<Layer>& layers = pair.layers();
  std::vector<std::vector<int32_t>> kinds;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto same = std::ranges::find_if(kinds, [&](const std::vector<int32_t>& kind) {
      const Layer& first = layers[static_cast<size_t>(kind[0])];
      return !first.is_single && !layers[i].is_single && IsSameLayer(pair, first, layers[i]);
    });
    if (same == kinds.end()) {
      kinds.push_back({static_cast<int32_t>(i)});
    } else {
      same->push_back(static_cast<int32_t>(i));
    }
  }
  std::vector<int32_t> representatives(layers.size());
  for (const std::vector<int32_t>& kind : kinds) {
    // The middle one: its neighbours are left out, so that it reads random numbers and not, as the
    // first one, rows of an embedding, of which some are equal.
    const int32_t middle = kind[kind.size() / 2];
    for (const int32_t layer : kind) {
      const bool is_same = layer == middle || IsSameLayer(pair, layers[static_cast<size_t>(middle)],
                                                          layers[static_cast<size_t>(layer)]);
      representatives[static_cast<size_t>(layer)] = is_same ? middle : layer;
    }
  }
  return representatives;
}

/// What stays of two graphs.
class LayerCut {
 public:
  explicit LayerCut(const LayeredPair& pair)
      : pair_(pair), representatives_(Representatives(pair)) {}

  /// Whether a layer can be left out.
  bool Run() {
    while (!Mark()) {
    }
    return NumLeftOut() > 0;
  }

  int64_t NumLeftOut() const {
    int64_t count = 0;
    for (size_t i = 0; i < representatives_.size(); ++i)
      count += IsLeftOut(static_cast<int32_t>(i)) ? 1 : 0;
    return count;
  }

  /// The module with the graph that stays.
  std::unique_ptr<Module> Build(Side side, uint64_t first_id) const {
    const Graph& whole = pair_.graph(side);
    std::unique_ptr<Module> module = whole.module().Clone();
    Graph& graph = module->graph(whole.id());
    Rewriter rewriter(graph);
    AddGiven(side, first_id, rewriter);
    DropOutputs(side, rewriter);
    std::vector<NodeId> nodes = graph.nodes().Snapshot();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
      if (node->index < whole.node_bound() && !Stays(side, *node)) rewriter.Erase(*node);
    return module;
  }

 private:
  bool IsLeftOut(int32_t layer) const {
    return layer >= 0 && representatives_[static_cast<size_t>(layer)] != layer;
  }
  bool Stays(Side side, NodeId node) const { return stays_[side][static_cast<size_t>(node.index)]; }

  void Keep(Side side, NodeId node) {
    if (Stays(side, node)) return;
    stays_[side][static_cast<size_t>(node.index)] = true;
    work_.emplace_back(side, node);
  }

  /// Finds what stays. False: a layer that was to be left out has to stay, so begin again.
  bool Mark() {
    given_.clear();
    work_.clear();
    for (const Side side : kSides) {
      const Graph& graph = pair_.graph(side);
      stays_[side].assign(static_cast<size_t>(graph.node_bound()), false);
      inputs_[side] = graph.placeholders();
      for (const NodeId node : graph.nodes())
        if (!IsLeftOut(pair_.LayerOf(side, node))) Keep(side, node);
    }
    while (!work_.empty()) {
      const auto [side, node] = work_.back();
      work_.pop_back();
      // Outputs of layers that are left out are left out with them.
      if (pair_.graph(side).node(node).kind == NodeKind::kOutput) continue;
      bool is_legal = true;
      pair_.graph(side).ForEachOperand(
          node, [&, of = side](ValueId value) { is_legal = Need(of, value) && is_legal; });
      if (!is_legal) return false;
    }
    return true;
  }

  /// What stays reads a value. Given ones take the place of those that are compared, others are
  /// computed.
  bool Need(Side side, ValueId value) {
    const Graph& graph = pair_.graph(side);
    const NodeId def = graph.value(value).def;
    if (Stays(side, def)) return true;
    const int32_t layer = pair_.LayerOf(side, def);
    if (pair_.IsWritten(side, value)) {
      representatives_[static_cast<size_t>(layer)] = layer;
      return false;
    }
    if (graph.node(def).kind == NodeKind::kPlaceholder) {
      KeepInput(side, def);
    } else if (const auto given = pair_.GivenFor(side, value)) {
      given_.emplace(given->before.index, *given);
    } else {
      Keep(side, def);
    }
    return true;
  }

  /// Both graphs keep an input.
  void KeepInput(Side side, NodeId node) {
    const auto at = std::ranges::find(inputs_[side], node) - inputs_[side].begin();
    for (const Side either : kSides)
      Keep(either, inputs_[either][static_cast<size_t>(at)]);
  }

  /// New inputs after the others, in one order in both graphs.
  void AddGiven(Side side, uint64_t first_id, Rewriter& rewriter) const {
    Graph& graph = rewriter.graph();
    if (inputs_[side].empty()) {
      rewriter.SetCursorBefore(graph.first());
    } else {
      rewriter.SetCursorAfter(inputs_[side].back());
    }
    for (const auto& [index, given] : given_) {
      const ValueId value = side == kBefore ? given.before : given.after;
      const TypeId type[] = {graph.value(value).type};
      const std::string name =
          fmt::format("given_{}", pair_.graph(kBefore).value_name(given.before));
      const NodeId input = rewriter.Create({.kind = NodeKind::kPlaceholder,
                                            .results = type,
                                            .name = name,
                                            .stable_id = StableId{first_id++}},
                                           From::Source());
      rewriter.ReplaceUses(value, graph.result(input));
    }
  }

  /// Outputs that layers which are left out compute.
  void DropOutputs(Side side, Rewriter& rewriter) const {
    Graph& graph = rewriter.graph();
    const Arg list = graph.args(graph.output())[0];
    std::vector<Arg> kept;
    const Graph& whole = pair_.graph(side);
    for (const Arg& element : whole.elements(whole.args(whole.output())[0])) {
      if (!element.is_value() || !IsLeftOut(pair_.LayerOf(side, whole.value(element.value()).def)))
        kept.push_back(element);
    }
    const Arg args[] = {rewriter.MakeSpan(list.kind(), kept)};
    rewriter.SetArgs(graph.output(), args, {});
  }

  const LayeredPair& pair_;
  std::vector<int32_t> representatives_;
  std::array<std::vector<bool>, 2> stays_;     // by node
  std::array<std::vector<NodeId>, 2> inputs_;  // of the whole graphs
  std::map<int32_t, GivenValue> given_;        // by value of the graph before
  std::vector<std::pair<Side, NodeId>> work_;
};

/// One flat list of values.
bool HasListOfOutputs(const Graph& graph) {
  if (!graph.output().valid()) return false;
  const auto args = graph.args(graph.output());
  if (args.size() != 1 || !args[0].is_span() || args[0].kind() > ArgKind::kTuple) return false;
  return std::ranges::none_of(graph.elements(args[0]), &Arg::is_span);
}

}  // namespace

std::optional<FewerLayers> WithoutEqualLayers(const Graph& before, const Graph& after) {
  const bool have_same_inputs = before.placeholders().size() == after.placeholders().size();
  if (!have_same_inputs || !HasListOfOutputs(before) || !HasListOfOutputs(after) ||
      before.operands(before.output()).size() != after.operands(after.output()).size())
    return std::nullopt;
  const LayeredPair pair(before, after);
  LayerCut cut(pair);
  if (!cut.Run()) return std::nullopt;
  const uint64_t first_id =
      std::max(before.module().next_stable_id(), after.module().next_stable_id());
  FewerLayers fewer;
  fewer.before_module = cut.Build(kBefore, first_id);
  fewer.after_module = cut.Build(kAfter, first_id);
  fewer.before = &fewer.before_module->graph(before.id());
  fewer.after = &fewer.after_module->graph(after.id());
  fewer.layers = static_cast<int64_t>(pair.layers().size());
  fewer.left_out = cut.NumLeftOut();
  return fewer;
}

}  // namespace strata::prove
