#include "prove/layers/fewer_layers.h"

#include <algorithm>
#include <utility>
#include <vector>

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

}  // namespace

std::optional<FewerLayers> WithoutEqualLayers(const Graph& before, const Graph& after) {
  if (!PairCut::CanCut(before, after)) return std::nullopt;
  const LayeredPair pair(before, after);
  std::vector<int32_t> representatives = Representatives(pair);
  const auto is_left_out = [&](int32_t layer) {
    return layer >= 0 && representatives[static_cast<size_t>(layer)] != layer;
  };
  // Output i of both graphs is of one layer, or the layers stay.
  const std::vector<ValueId> outputs = before.operands(before.output());
  PairCut cut(
      pair, {.node = [&](Side side, NodeId node) { return is_left_out(pair.LayerOf(side, node)); },
             .output =
                 [&](size_t i) {
                   return is_left_out(pair.LayerOf(kBefore, before.value(outputs[i]).def));
                 }});
  while (const auto refused = cut.Mark()) {
    const int32_t layer = pair.LayerOf(refused->side, refused->node);
    representatives[static_cast<size_t>(layer)] = layer;
  }
  FewerLayers fewer;
  fewer.layers = static_cast<int64_t>(representatives.size());
  for (int32_t layer = 0; std::cmp_less(layer, representatives.size()); ++layer)
    fewer.left_out += is_left_out(layer) ? 1 : 0;
  if (fewer.left_out == 0) return std::nullopt;
  fewer.pair = cut.Build();
  return fewer;
}

}  // namespace strata::prove
