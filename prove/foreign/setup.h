#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "passes/placement/mesh.h"
#include "prove/foreign/dtensor_metadata.h"
#include "prove/foreign/program.h"
#include "prove/foreign/rank_mesh.h"

namespace strata::prove {

/// What the logs of one device and of all ranks say of each other.
struct ForeignSetup {
  std::vector<InputName> names;                       ///< of the inputs of one device
  std::vector<InputName> rank_names;                  ///< of those of a rank, by the same names
  DTensorSpecs inputs, outputs, tangents, gradients;  ///< of the ranks, by position
  NamedGroups groups;
  Mesh mesh;
  /// "input l_y_ of the ranks is l_x_, by order", "the ranks do not read l_z_"
  std::vector<std::string> pairings;

  const DTensorSpec* SpecOf(const DTensorSpecs& specs, size_t position) const {
    const auto found = specs.find(position);
    return found == specs.end() ? nullptr : &found->second;
  }
  /// Whether a graph of the ranks has reductions over the axis.
  bool Reduces(const Graph& graph, size_t axis) const;
};

/// Errors: ranks with other nodes than the first one; graphs that one side lacks; inputs that
/// cannot be paired; a mesh that cannot be evaluated.
Result<ForeignSetup> SetUp(const CompiledProgram& single, std::span<const CompiledProgram> ranks);

}  // namespace strata::prove
