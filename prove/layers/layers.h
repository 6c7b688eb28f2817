#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "passes/placement/mesh.h"
#include "prove/evaluation/storage_sets.h"
#include "prove/layers/alike_values.h"

namespace strata::prove {

/// Which of the two graphs of a proof.
enum Side : uint8_t { kBefore, kAfter };
inline constexpr std::array<Side, 2> kSides = {kBefore, kAfter};

/// A value that both graphs have, which a proof compares.
struct GivenValue {
  ValueId before, after;
};

/// Input or output i of both graphs, as nodes of a layer: by their place in it, and result.
struct LayerSlot {
  std::array<int32_t, 2> places = {-1, -1};  ///< by Side
  std::array<uint32_t, 2> results = {0, 0};
  friend bool operator==(const LayerSlot&, const LayerSlot&) = default;
};

/// One of the numbered modules of a model: "layers.3".
struct Layer {
  std::string module;
  std::array<std::vector<NodeId>, 2> nodes;  ///< by Side, in program order
  std::vector<LayerSlot> inputs, outputs;    ///< in order
  /// It shares memory that is written with other modules, or has an input or output that one of the
  /// graphs has elsewhere: not to be left out.
  bool is_single = false;
};

/// The graphs before and after a pass, by layers. Nodes with equal StableIds are paired.
class LayeredPair {
 public:
  /// REQUIRES: the graphs outlive this.
  LayeredPair(const Graph& before, const Graph& after);

  const Graph& graph(Side side) const { return *graphs_[side]; }
  const std::vector<Layer>& layers() const { return layers_; }
  /// The layer of a node; -1: none.
  int32_t LayerOf(Side side, NodeId node) const { return layer_of_[side][Index(node)]; }
  /// Its place in the layer.
  int32_t PlaceOf(Side side, NodeId node) const { return place_of_[side][Index(node)]; }
  /// The node of the other graph that has the same values; none: there is none.
  NodeId PartnerOf(Side side, NodeId node) const { return partner_of_[side][Index(node)]; }
  /// Whether some node writes to the storage of the value.
  bool IsWritten(Side side, ValueId value) const {
    return is_written_[side][static_cast<size_t>(value.index)];
  }
  /// The first value of the graph that is equal to this one (AlikeValues).
  ValueId FirstAlike(Side side, ValueId value) const { return alike_[side].FirstOf(value); }
  /// The value and its partner, if any value may take their place: one of real or complex numbers
  /// that the proof compares, in memory that nothing writes to. Of equal values it is the
  /// first one, and its partner.
  std::optional<GivenValue> GivenFor(Side side, ValueId value) const;

 private:
  static size_t Index(NodeId node) { return static_cast<size_t>(node.index); }
  void FindLayers();
  void FindPartners();
  void FindWritten(Side side);
  /// Storages that only nodes of no layer write to, all before the first layer has a value in it.
  std::set<int32_t> FixedBeforeLayers(Side side, StorageSets& storages) const;
  void FindSlots();
  void AddSlot(ValueId before, ValueId after, std::vector<LayerSlot> Layer::* slots);
  /// The value and its partner, if the proof compares them as above.
  std::optional<GivenValue> ComparedPair(Side side, ValueId value) const;
  bool IsCompared(ValueId before, ValueId after) const;

  std::array<const Graph*, 2> graphs_;
  std::optional<Mesh> mesh_;  // of a lowering: values are compared by their placements
  std::vector<Layer> layers_;
  std::array<std::vector<int32_t>, 2> layer_of_, place_of_;  // by node
  std::array<std::vector<NodeId>, 2> partner_of_;            // by node
  std::array<std::vector<bool>, 2> is_written_;              // by value
  std::vector<AlikeValues> alike_;                           // by Side
};

/// Whether two layers are the same program: equal operators, literals and types in the same order,
/// and operands that are the same value, of the same place in the layer, or values of other modules
/// that a proof compares, of which equal ones of `from` are equal ones of `to`. What is proven of
/// `from` for all values that it reads then holds for `to`.
bool IsSameLayer(const LayeredPair& pair, const Layer& from, const Layer& to);

}  // namespace strata::prove
