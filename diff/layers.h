#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diff/labels.h"
#include "diff/listing.h"

namespace strata {

/// Where in a program of repeated layers each node is. Module paths tell; where a program has none,
/// its structure does: stretches of the node list that repeat are layers, and get the paths
/// `layers.0`, `layers.1`, ….
class Layers {
 public:
  Layers(const Listing& listing, const Labels& labels);

  /// The module path, or `layers.<i>` found by structure; "" outside of all. Valid while the
  /// listing lives.
  std::string_view path(int32_t entity) const { return paths_[place_of_[Index(entity)]]; }
  /// The path up to its first number: `layers.7`; "" when the path has none.
  std::string_view layer(int32_t entity) const { return layers_[place_of_[Index(entity)]]; }
  /// What the node is in its layer: equal for corresponding nodes of different layers.
  uint64_t role(int32_t entity) const { return roles_[Index(entity)]; }
  /// The paths were found by structure.
  bool by_structure() const { return by_structure_; }

 private:
  static size_t Index(int32_t i) { return static_cast<size_t>(i); }
  void TakePaths(const Listing& listing, const Labels& labels);
  void FindByStructure(const Listing& listing, const Labels& labels);

  bool by_structure_ = false;
  std::vector<std::string_view> paths_, layers_;  // by place; 0 is nowhere
  std::vector<std::string> found_;                // what paths_ views, if by structure
  std::vector<size_t> place_of_;                  // by entity
  std::vector<uint64_t> roles_;                   // by entity
};

/// A stretch of a sequence that repeats.
struct Repetition {
  std::vector<int32_t> begins;  ///< of each repetition, ascending
  int32_t end = 0;              ///< of the last one
};
struct Repetitions {
  std::vector<Repetition> stretches;  ///< ascending; all repeat equally often
  int32_t explained = 0;              ///< labels that every repetition of their stretch has
};

/// Stretches that repeat equally often and have at least half of their labels in every repetition:
/// those that explain most labels, and at least a quarter of all. A repetition begins at a label
/// that occurs once in each, so one that has a little more or less than the others stays one.
/// Near linear. Empty when nothing repeats.
Repetitions FindRepetitions(const std::vector<uint64_t>& labels);

}  // namespace strata
