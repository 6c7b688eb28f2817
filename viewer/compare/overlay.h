#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/id.h"
#include "scene/scene.h"
#include "viewer/compare/comparison.h"

namespace strata::viewer {

/// Colours nodes by a property: a number, or the most frequent kinds. The value of a node is always
/// written as well. Does not change, so any thread may read it.
class Overlay {
 public:
  /// `key`: one of AvailableOverlays.
  static Overlay Make(const Comparison& comparison, const std::string& key);

  const std::string& key() const { return key_; }
  const std::string& label() const { return label_; }
  /// The share of the colour scale, 0 to 1; below 0: plain.
  float ShareOf(SceneNodeId node) const { return shares_[node]; }
  /// "" for a node without the property.
  std::string TextOf(SceneNodeId node) const;
  /// The sum over a slab; "" where sums mean nothing.
  std::string TextOfCluster(ClusterId cluster) const;
  /// Words with their shares; below 0: plain.
  const std::vector<std::pair<std::string, float>>& legend() const { return legend_; }

 private:
  using Unit = std::string (*)(double);

  void TakeNumbers(const Comparison& comparison, bool sums, bool is_signed);
  void TakeKinds();

  std::string key_, label_;
  Unit unit_ = nullptr;                   // of numbers
  IdVector<SceneNodeId, double> values_;  // of numbers; NaN: none
  IdVector<ClusterId, double> totals_;    // empty: no sums
  std::vector<std::string> kinds_;        // most frequent first
  IdVector<SceneNodeId, int32_t> kind_;   // index into kinds_; -1: none
  IdVector<SceneNodeId, float> shares_;
  std::vector<std::pair<std::string, float>> legend_;
};

/// What the overlay of that key writes of a node; "": nothing.
std::string PropertyOf(const Comparison& comparison, std::string_view key, SceneNodeId node);

/// (key, label) of the overlays for which a graph has anything to show; those of changed costs
/// wherever two graphs differ.
std::vector<std::pair<std::string, std::string>> AvailableOverlays(const Comparison& comparison);

}  // namespace strata::viewer
