#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/costs/collective_cost.h"
#include "passes/placement/costs/compute_scales.h"
#include "passes/placement/costs/topology.h"
#include "passes/placement/placement.h"
#include "passes/placement/redistribution.h"
#include "passes/placement/rules/sharding_rule.h"

namespace strata {

/// What a placement costs in µs on a mesh of ranks.
///
/// Computation is a roofline: the larger of the time for memory and that for products, on the part
/// of a rank. Communication is the time of the collectives that `lower` emits
/// (passes/placement/redistribution.h), plus the copies around them, one after another. Ranks that
/// share cores take as much longer (Topology::Crowding).
/// Source of the roofline: meta-pytorch/autoparallel.
class CostModel {
 public:
  /// Errors: those of AxisTopologies.
  static Result<CostModel> Make(Topology topology, Mesh mesh);

  const Topology& topology() const { return topology_; }
  const Mesh& mesh() const { return mesh_; }

  /// Of a change of `type`, without placements, from one to the other. `is_prefetched`: it can run
  /// beside computation (passes/placement/costs/prefetch.h).
  double RedistributionUs(const Module& module, const Type& type, const Placements& from,
                          const Placements& to, bool is_prefetched = false) const;
  /// From now on, of what is prefetched, this part counts: what computation waits for.
  void set_exposed(double part) { exposed_ = part; }
  /// From now on, computation takes as many times as long.
  void set_scales(ComputeScales scales) { scales_ = std::move(scales); }

  /// Of the call `node` with these placements of its operands and results. Views are free.
  /// `factor_sizes`: those of `rule` on a rank.
  double ComputeUs(const Graph& graph, NodeId node, const ShardingRule& rule,
                   std::span<const int64_t> factor_sizes, std::span<const Placements> operands,
                   std::span<const Placements> results) const;

  /// Of the update of a parameter: AdamW reads it, its gradient and two averages, and writes all
  /// but the gradient.
  double UpdateUs(const Module& module, const Type& type, const Placements& placements) const;

  /// The least time of a kernel that moves `bytes`.
  double MemoryUs(double bytes) const;
  /// Of the part that a rank holds.
  double LocalBytes(const Module& module, const Type& type, const Placements& placements) const;

  /// Added to every redistribution, so that one step is preferred to two that cost the same.
  static constexpr double kTransitionUs = 1.0;

 private:
  CostModel(Topology topology, Mesh mesh, std::vector<AxisTopology> axes)
      : topology_(std::move(topology)),
        mesh_(std::move(mesh)),
        axes_(std::move(axes)),
        crowding_(topology_.Crowding(mesh_.num_ranks())) {}

  double ChangesUs(const Module& module, const Type& type, const Placements& from,
                   const Placements& to) const;
  double ExchangeUs(CollectiveOp collective, double bytes, const AxisTopology& axis) const;
  /// Of changes that one collective of several axes makes.
  AxisTopology Joined(const std::vector<AxisChange>& changes, size_t first, size_t count) const;
  /// Of what ranks exchange inside an operator that is cut along the classes of a softmax.
  double SoftmaxExchangeUs(const Graph& graph, const std::vector<ValueId>& values,
                           const ShardingRule& rule, std::span<const int64_t> factor_sizes,
                           std::span<const Placements> operands) const;

  Topology topology_;
  Mesh mesh_;
  std::vector<AxisTopology> axes_;
  double crowding_ = 1;
  double exposed_ = 1;
  ComputeScales scales_;
};

/// Floating-point operations of `op`, without namespace and overload, with factors of these sizes;
/// 0: not a product.
double FlopsOf(std::string_view op, const ShardingRule& rule,
               std::span<const int64_t> factor_sizes);

}  // namespace strata
