#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/comm/bucket_plan.h"

namespace strata {

enum class Direction : uint8_t { kForward, kBackward };

/// Where communication of parameters disturbs no exchange of tokens: products, norms and
/// activations of each layer; in layers with experts, only those of attention. In program order.
class DenseRegions {
 public:
  DenseRegions(const Graph& graph, const BlockStructure& blocks);

  /// Empty if the layer has no such node. `layer` may be `num_layers`: norm and lm_head.
  const std::vector<NodeId>& Of(int64_t layer, Direction direction) const;

 private:
  std::map<std::pair<int64_t, Direction>, std::vector<NodeId>> regions_;
};

/// A collective of the parameters or gradients of one bucket.
struct BucketComm {
  NodeId launch, wait;
  bool is_gather = false;
  Direction direction = Direction::kForward;
  /// `num_layers`: norm and lm_head; kNoLayer: others, such as embeddings.
  int64_t layer = kNoLayer;

  static constexpr int64_t kNoLayer = -1;
};

/// All-gathers of parameters and reduce-scatters of gradients, in program order. The attribute of
/// buckets says which layer one belongs to; without it, the first readers that have a module path.
/// Errors: a bucket of two layers, or of a layer that the model does not have.
Result<std::vector<BucketComm>> BucketComms(const Graph& graph, int64_t num_layers);

/// Errors: a layer whose number of all-gathers in forward or backward, or of reduce-scatters, is
/// not that of its buckets in `counts`; all such layers, one a line.
Status CheckBucketCounts(const std::vector<BucketComm>& comms,
                         const std::map<int64_t, int64_t>& counts);

}  // namespace strata
