#pragma once
#include <cstdint>
#include <vector>

#include "scene/geometry.h"
#include "scene/scene.h"

namespace strata {

/// The boxes of a block before they have positions.
struct FoldedBlock {
  std::vector<SceneBox> boxes;  // `x` in half columns from the middle of the lane
  int32_t height = 0;           // rows
};

/// Decides which nodes of a block are drawn, and folds the others.
class BlockFolder {
 public:
  /// REQUIRES: both outlive the folder.
  BlockFolder(const Scene& scene, const SceneView& view);

  /// Block `number` of a cluster.
  FoldedBlock Fold(const SceneBlock& block, ClusterId cluster, int32_t number) const;

 private:
  bool ByHand(SceneNodeId node) const;
  bool IsHidden(SceneNodeId node, bool unfolded) const;
  /// Appends what stands for hidden nodes: a fold, or the node itself if it is alone and was not
  /// hidden by the user.
  void Flush(std::vector<ScenePlace>& pending, std::vector<std::vector<SceneBox>>& rows) const;
  /// The rows of one lane, from the top, without those of hidden nodes.
  std::vector<std::vector<SceneBox>> FoldLane(const SceneBlock& block, bool backward,
                                              bool unfolded) const;

  const Scene& scene_;
  const SceneView& view_;
  bool all_ = false;
};

}  // namespace strata
