#pragma once
#include <cstdint>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Makes one node of each region of annotated nodes (passes/regions/region_graph.h).
///
///   before  a = add(x, y) {custom.compile_with_inductor={}}  b = mul(a, 2) {the same}  c = mm(b,
///   w) after   region_0 = attr region_0(graph(1))
///           (b,) = strata.fused(region_0, x, y, region=True)     // graph 1: the two nodes
///           c = mm(b, w)
///
/// The body keeps modules, locations and attributes of its nodes. What a body means is what its
/// nodes mean, in their order: results are bitwise equal. `fuse` makes kernels inside of a region
/// and outside of regions, never across a border. The first member's configuration
/// (`inductor_configs`) is that of the region; keys other than those of this pass are an error.
/// Source: PyTorch's regional_inductor, with the partitioner of torch.fx.
class CompileRegions final : public Pass {
 public:
  struct Options {
    int64_t min_nodes = 1;
    bool serializable = false, boxed = false;
    void Bind(OptionList& list) {
      list.AddCount("min", min_nodes, "least number of nodes per region");
      list.Add("serializable", serializable, "regions can be stored, which they always can");
      list.Add("boxed", boxed, "torchtitan's other calling convention; not with serializable");
    }
  };
  static constexpr std::string_view kSummary = "make annotated nodes regions, each one node";

  CompileRegions() = default;
  explicit CompileRegions(const Options& options) : options_(options) {}
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
