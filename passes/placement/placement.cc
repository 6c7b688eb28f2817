#include "passes/placement/placement.h"

#include <algorithm>

namespace strata {

std::string PlacementsText(const Module& module, const Placements& placements) {
  std::string text;
  for (const Placement& placement : placements)
    PrintPlacement(placement, module.strings(), text);
  return text;
}

Result<Placements> ParsePlacements(Module& module, std::string_view text, const Mesh& mesh) {
  // The grammar is that of types.
  const TypeId id = module.types().Parse(fmt::format("DTensor(f32[], {})", text));
  const Type& type = module.types()[id];
  if (type.kind != TypeKind::kTensor || type.placements.size() != mesh.axes().size()) {
    return Error("'{}' is not a placement for each axis of the mesh {}: write S(dim), R or P(sum)",
                 text, mesh.Text());
  }
  return type.placements;
}

TypeId WithPlacements(Module& module, TypeId id, const Placements& placements) {
  if (!id.valid()) return id;
  Type type = module.types()[id];
  if (type.kind != TypeKind::kTensor) return id;
  type.placements = placements;
  type.wrapper = module.Intern("DTensor");
  return module.types().Intern(type);
}

Result<TypeId> LocalType(Module& module, TypeId placed, const Mesh& mesh) {
  if (!placed.valid()) return placed;
  Type type = module.types()[placed];
  if (type.kind != TypeKind::kTensor || type.placements.empty()) return placed;
  DimTable& dims = module.dims();
  const auto divide = [&](DimId dim, int64_t by) -> std::optional<DimId> {
    const DimId quotient = dims.FloorDiv(dim, dims.Const(by));
    if (!dims.ProvablyEqual(dims.Mul(quotient, dims.Const(by)), dim)) return std::nullopt;
    return quotient;
  };
  for (size_t axis = 0; axis < type.placements.size(); ++axis) {
    const Placement& p = type.placements[axis];
    if (!IsShard(p)) continue;
    const int64_t ranks = mesh.axes()[axis].size;
    const size_t dim = static_cast<size_t>(p.dim);
    if (dim >= type.sizes.size())
      return Error("{} has no dimension {}", module.types().ToString(placed), dim);
    const auto local = divide(type.sizes[dim], ranks);
    if (!local) {
      return Error("the {} ranks of mesh axis {} cannot divide dimension {} of {} evenly", ranks,
                   mesh.axes()[axis].name, dim, module.types().ToString(placed));
    }
    // Strides are those of the whole tensor: dimensions around the sharded one step over all of it.
    if (type.has_strides) {
      const auto size = dims.AsConst(type.sizes[dim]), stride = dims.AsConst(type.strides[dim]);
      for (size_t other = 0; other < type.strides.size(); ++other) {
        const auto step = dims.AsConst(type.strides[other]);
        const bool is_around =
            other != dim && (!step || !size || !stride || *step >= *size * *stride);
        const bool is_zero = step == 0;
        if (!is_around || is_zero) continue;
        if (const auto scaled = divide(type.strides[other], ranks)) type.strides[other] = *scaled;
      }
    }
    type.sizes[dim] = *local;
  }
  type.placements.clear();
  type.wrapper = {};
  return module.types().Intern(type);
}

double NumElements(const Module& module, const Type& type) {
  double elements = 1;
  for (const DimId size : type.sizes)
    elements *= static_cast<double>(module.dims().Hint(size).value_or(1));
  return elements;
}

}  // namespace strata
