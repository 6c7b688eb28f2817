#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace strata {

/// A matched pair as a point: its place in the orders of both sides.
struct OrderPoint {
  int32_t before, after;
  /// Which of equally long choices is kept: the greater sum. The same for both directions.
  uint32_t preference = 0;
};

/// The largest set of points that ascends in both orders: what a reader would say has not moved.
/// Returns a flag per point. O(n log n).
///
/// REQUIRES: `points` ascend in `before`; `after` values are unique.
std::vector<bool> LargestOrderedSet(std::span<const OrderPoint> points);

/// Says where on one side a node of the other side is expected, from matched nodes around it.
class PositionMap {
 public:
  /// REQUIRES: `anchors` ascend in both coordinates.
  explicit PositionMap(std::vector<std::pair<int32_t, int32_t>> anchors)
      : anchors_(std::move(anchors)) {}

  /// The after position that belongs to a before position, between the next anchors.
  double AfterOf(int32_t before) const;
  double BeforeOf(int32_t after) const;
  /// How far a pair is from where its neighbours are; symmetric in the sides.
  double Distance(int32_t before, int32_t after) const;

 private:
  std::vector<std::pair<int32_t, int32_t>> anchors_;
};

}  // namespace strata
