#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "diff/model/graph_diff.h"

namespace strata::internal {

/// Of the slab of a chunk: "chunk 0".
inline constexpr std::string_view kChunkLabel = "chunk ";

/// The paths of slabs: the module of a node, below the name of its body if it is in one; "inputs"
/// for inputs and constants without a module. What passes cut is a part of the path, too:
///
///   layers.3.moe.experts            a module
///   layers.3.moe.chunk 1.experts    the second chunk of `layers.3.moe`
///   stage 1.layers.3.moe.experts    below its pipeline stage, where a graph has several
class ScenePaths {
 public:
  /// REQUIRES: `diff` outlives this.
  explicit ScenePaths(const GraphDiff& diff);

  /// What a path is made of. Texts are those of the module.
  struct Parts {
    int32_t scope = 0;
    bool after = false, is_input = false;
    std::string_view module, stage, chunk, region;

    friend auto operator<=>(const Parts&, const Parts&) = default;
  };
  Parts PartsOf(bool after, EntityId id) const;
  std::string PathOf(const Parts& parts) const;

 private:
  const GraphDiff& diff_;
  bool has_stages_ = false;
};

}  // namespace strata::internal
