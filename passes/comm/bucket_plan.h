#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace strata {

/// The module paths whose parameters communicate together: `{"norm", "lm_head"}`.
using BucketEntry = std::vector<std::string>;
/// Disjoint entries, in the order of forward.
using BucketPlan = std::vector<BucketEntry>;

/// What a plan of a transformer depends on.
struct BlockStructure {
  int64_t num_layers = 0;
  std::vector<int64_t> moe_layers = {};  ///< ascending
  bool has_chunked_loss = false;         ///< the loss reads the parameters of `lm_head`
  bool split_experts = false;            ///< experts have ranks of their own, and so a bucket

  /// As the module paths of `graph` say.
  static BlockStructure Of(const Graph& graph);
};

/// One entry for the token embedding, one for each layer, one for the last norm and the output
/// layer. With `split_experts` a layer of experts has two.
BucketPlan DefaultBuckets(const BlockStructure& blocks);

/// Entries are separated by `|` and their paths by `,`; `layers.*` is an entry for each layer:
/// "tok_embeddings|layers.*|norm,lm_head". Errors: an empty path, paths of which one contains
/// another.
Result<BucketPlan> ParseBucketPlan(std::string_view text, int64_t num_layers);

/// "norm,lm_head"
std::string EntryText(const BucketEntry& entry);

/// For each layer below `num_layers` the number of entries. Paths outside of layers do not count.
/// Errors: an entry of two layers, a layer without entry or beyond the last one.
Result<std::map<int64_t, int64_t>> BucketCounts(const BucketPlan& plan, int64_t num_layers);

/// The modules of parameters, numbered in order of their first parameter. Names without a dot have
/// no module. FSDP2 packs parameters in this order.
std::map<std::string, int64_t, std::less<>> ParameterModules(const std::vector<std::string>& names);

/// The entry of a module path.
class BucketIndex {
 public:
  explicit BucketIndex(const BucketPlan& plan);
  /// The position in the plan of the entry at or above `module`; -1: none.
  int32_t EntryOf(std::string_view module) const;

 private:
  std::map<std::string, int32_t, std::less<>> entry_of_;
};

}  // namespace strata
