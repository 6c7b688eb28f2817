#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  float ShareOf(int32_t node) const { return shares_[static_cast<size_t>(node)]; }
  /// "" for a node without the property.
  std::string TextOf(int32_t node) const;
  /// The sum over a slab; "" where sums mean nothing.
  std::string TextOfCluster(int32_t cluster) const;
  /// Words with their shares; below 0: plain.
  const std::vector<std::pair<std::string, float>>& legend() const { return legend_; }

 private:
  using Unit = std::string (*)(double);

  void TakeNumbers(const Comparison& comparison, bool sums, bool is_signed);
  void TakeKinds();

  std::string key_, label_;
  Unit unit_ = nullptr;             // of numbers
  std::vector<double> values_;      // of numbers, by node; NaN: none
  std::vector<double> totals_;      // by cluster; empty: no sums
  std::vector<std::string> kinds_;  // most frequent first
  std::vector<int32_t> kind_;       // by node, index into kinds_; -1: none
  std::vector<float> shares_;
  std::vector<std::pair<std::string, float>> legend_;
};

/// What the overlay of that key writes of a node; "": nothing.
std::string PropertyOf(const Comparison& comparison, std::string_view key, int32_t node);

/// (key, label) of the overlays for which a graph has anything to show; those of changed costs
/// wherever two graphs differ.
std::vector<std::pair<std::string, std::string>> AvailableOverlays(const Comparison& comparison);

}  // namespace strata::viewer
