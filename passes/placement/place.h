#pragma once
#include <string>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"
#include "passes/placement/plan.h"
#include "passes/placement/reshard.h"

namespace strata {

/// Decides how the ranks of a mesh hold every value: types get placements, and where a reader needs
/// another placement than a value has, a `strata.redistribute` node stands before it. Values stay
/// global: the graph computes the same numbers on one rank.
///
///   before  mm = mm(x, w)                         x: f32[512, 64]  w: f32[64, 64]
///   after   r = strata.redistribute(w, 'R')       r: DTensor(f32[64, 64], R)  w: DTensor(…, S(0))
///           mm = mm(x, r)                         x: DTensor(f32[512, 64], S(0))
///
/// A plan decides parameters, data and some module outputs (passes/placement/plan.h). Each other
/// node takes, axis by axis, the strategy of its sharding rule that moves the fewest bytes, and
/// among equal ones that with the smallest part of the result on a rank. Parameters are gathered
/// before their first reader in forward, and those of blocks again in backward (Reshard); gradients
/// are reduced right after the node that made them.
///
/// Errors: a mesh or plan that cannot be read or found, an operator without a sharding rule, a
/// tensor that is written but would have to be redistributed first.
class Place : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "decide how the ranks of a mesh hold every value, and mark where that changes";

  struct Options {
    std::string mesh;
    std::string plan;
    // Of the plan `auto`.
    std::string topology = "h100";
    std::string memory_policy = "none";
    bool sequence_parallel = true;
    bool loss_parallel = true;
    bool reshard_after_forward = true;
    bool reshard_outside_blocks = false;
    void Bind(OptionList& list);
  };
  explicit Place(Options options) : options_(std::move(options)) {}

  Result<Changed> Run(Module& module) override;

 protected:
  const Options& options() const { return options_; }
  Reshard reshard() const;
  /// That of the name or file `plan`.
  virtual Result<PlacementPlan> PlanFor(Module& module, const Mesh& mesh) const;

 private:
  Options options_;
};

/// Replaces operators by others of which ranks can take their part: random ones, views by strides.
/// Searches do so first: plans name the nodes that there are then.
void MakeShareable(Graph& graph);

/// Places one graph by `plan`, as the pass does.
Status PlaceGraph(Graph& graph, const PlacementPlan& plan, Reshard reshard);

}  // namespace strata
