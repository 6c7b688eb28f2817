#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diff/graph/listing.h"
#include "diff/match/labels.h"

namespace strata {

/// Where in a program of repeated layers each node is. Module paths decide; where nodes have none,
/// structure does: stretches of the node list that repeat are layers. They get the layers whose
/// parameters and values they read (backward after forward), or else the paths `place.0`,
/// `place.1`, …. Inputs that state their parameter (see StatedPath) are in its module, others where
/// they are used; so is what reads parameters of one module alone, where nothing repeats.
class Layers {
 public:
  Layers(const Listing& listing, const Labels& labels);

  /// The module path, or `place.<i>` found by structure; "" outside of all. Valid while this and
  /// the listing live.
  std::string_view path(EntityId entity) const { return paths_[place_of_[entity]]; }
  /// The index of its path: equal for equal paths.
  size_t place(EntityId entity) const { return place_of_[entity]; }
  size_t num_places() const { return paths_.size(); }
  /// The path up to its first number: `layers.7`; "" when the path has none.
  std::string_view layer(EntityId entity) const { return layers_[place_of_[entity]]; }
  /// What the node is in its layer: equal for corresponding nodes of different layers. Means
  /// nothing outside of all.
  uint64_t role(EntityId entity) const { return roles_[entity]; }
  /// An input or a constant that states its parameter, in whose module it is.
  bool is_parameter(EntityId entity) const { return by_structure_ && is_parameter_[entity]; }
  /// No node has a module path: all were found by structure.
  bool by_structure() const { return by_structure_; }

 private:
  void TakePaths(const Listing& listing, const Labels& labels);
  /// Places inputs and constants that state their parameter.
  void TakeParameters(const Listing& listing, const Labels& labels);
  void PlaceReaders(const Listing& listing, const Labels& labels);
  uint32_t PlaceOfPath(std::string_view path);
  /// Places the nodes of `sequence` by where they repeat.
  void FindByStructure(const Labels& labels, const std::vector<EntityId>& sequence);
  void NameNewLayers(size_t count);
  /// For each part of nodes the layer whose values it reads, or else the one that the order of the
  /// other parts gives it; empty when that is not one each.
  std::vector<size_t> LayersReadBy(const Labels& labels,
                                   const std::vector<std::vector<EntityId>>& parts) const;
  /// Gives parts without a layer (0) theirs where the others count up or down through the layers,
  /// and only one of both is possible: a backward layer may read nothing but the one behind it.
  void FillInOrder(std::vector<size_t>& chosen) const;
  void PlaceInputs(const Listing& listing, const Labels& labels);

  bool by_structure_ = false, has_named_layers_ = false;
  std::vector<std::string_view> paths_, layers_;  // by place; 0 is nowhere
  std::deque<std::string> found_;                 // what paths_ views, if by structure
  std::map<std::string_view, uint32_t> by_path_;  // places of found_
  IdVector<EntityId, uint32_t> place_of_;
  IdVector<EntityId, uint64_t> roles_;
  IdVector<EntityId, bool> is_parameter_;
};

/// Whether a path is one that Layers gave to layers without a name.
bool IsUnnamedPlace(std::string_view path);

}  // namespace strata
