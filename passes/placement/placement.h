#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "ir/row_placement.h"
#include "passes/placement/mesh.h"
#include "passes/placement/rules/redistribute_op.h"

namespace strata {

/// One per axis of a mesh.
using Placements = std::vector<Placement>;

inline Placement Replicate() {
  return {};
}
inline Placement Shard(size_t dim, int32_t split = 0) {
  return {.kind = Placement::Kind::kShard,
          .dim = static_cast<int32_t>(dim),
          .split = split,
          .reduce = {}};
}
inline Placement Partial(StrId reduce) {
  return {.kind = Placement::Kind::kPartial, .dim = 0, .split = 0, .reduce = reduce};
}
inline bool IsReplicate(const Placement& p) {
  return p.kind == Placement::Kind::kReplicate;
}
/// Of contiguous chunks.
inline bool IsShard(const Placement& p) {
  return p.kind == Placement::Kind::kShard && p.split >= 0;
}
/// Of rows that the rank's tokens or experts choose (ir/row_placement.h).
inline bool IsRows(const Placement& p) {
  return IsByToken(p) || IsByExpert(p);
}
/// A part of a dimension, whichever.
inline bool IsCut(const Placement& p) {
  return p.kind == Placement::Kind::kShard;
}
inline bool IsPartial(const Placement& p) {
  return p.kind == Placement::Kind::kPartial;
}

/// "S(0)R", as in the type of a value.
std::string PlacementsText(const Module& module, const Placements& placements);
/// Errors: not one placement per axis of `mesh`.
Result<Placements> ParsePlacements(Module& module, std::string_view text, const Mesh& mesh);

/// `type` with placements; the types of numbers stay as they are.
TypeId WithPlacements(Module& module, TypeId type, const Placements& placements);

/// The part of a placed tensor that a rank holds, without placements: sizes of sharded dimensions
/// divided by the sizes of their axes, strides of the dimensions around them likewise. `rows`: the
/// size of a dimension that is cut by experts. All ranks have parts of one size: where they do not
/// divide a dimension, the last ones have zeros after their elements.
/// Errors: a symbolic dimension that ranks may not divide evenly, one that is cut by experts
/// without `rows`.
Result<TypeId> LocalType(Module& module, TypeId placed, const Mesh& mesh, DimId rows = {});

/// The sizes of a rank's part of a tensor of these sizes. REQUIRES: no rows by expert.
std::vector<DimId> PartSizes(Module& module, std::vector<DimId> sizes, const Placements& placements,
                             const Mesh& mesh);

/// The largest number that surely divides a size: 12 of `12`, 4 of `4*s0 + 8`, 1 of `s0`.
int64_t KnownDivisor(const DimTable& dims, DimId size);

/// Number of elements under the hints of symbols; sizes without a hint count as 1.
double NumElements(const Module& module, const Type& type);

// Names that passes and runtime share.

/// Attribute of an output node: the mesh of its graph, "fsdp=2,tp=4".
inline constexpr std::string_view kMeshAttribute = "mesh";
/// Attribute of a placeholder or output of a lowered graph: the type that the value had before,
/// `DTensor(f32[256, 64][64, 1]cpu, S(0))`; of an output, one for each value, joined by "; ".
inline constexpr std::string_view kGlobalTypeAttribute = "global";

/// Whether a graph is the program of a rank: `lower` wrote it, or it is a part of one. A part has
/// no global types of outputs, but inputs with one, or collectives.
bool IsLowered(const Graph& graph);

}  // namespace strata
