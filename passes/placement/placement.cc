#include "passes/placement/placement.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "passes/core/collectives.h"

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

int64_t KnownDivisor(const DimTable& dims, DimId size) {
  if (const auto number = dims.AsConst(size)) return *number;
  const bool is_sum = dims.kind(size) == DimKind::kAdd;
  if (!is_sum && dims.kind(size) != DimKind::kMul) return 1;
  int64_t divisor = is_sum ? 0 : 1;
  for (const DimId operand : dims.operands(size)) {
    const int64_t known = KnownDivisor(dims, operand);
    divisor = is_sum ? std::gcd(divisor, known) : divisor * known;
  }
  return divisor;
}

namespace {

/// Divides sizes and strides of one tensor.
class LocalSizes {
 public:
  LocalSizes(DimTable& dims, Type& type) : dims_(dims), type_(type) {}

  std::optional<DimId> Quotient(DimId dim, int64_t by) {
    const DimId quotient = dims_.FloorDiv(dim, dims_.Const(by));
    if (!dims_.ProvablyEqual(dims_.Mul(quotient, dims_.Const(by)), dim)) return std::nullopt;
    return quotient;
  }

  /// Strides are those of the whole tensor: dimensions around `dim` step over all of it. None steps
  /// over a dimension that repeats its elements.
  template <class Fn>
  void ForEachStrideAround(size_t dim, Fn&& scale) {
    if (!type_.has_strides) return;
    const auto size = dims_.Hint(type_.sizes[dim]), stride = dims_.Hint(type_.strides[dim]);
    if (stride == 0) return;
    for (size_t other = 0; other < type_.strides.size(); ++other) {
      const auto step = dims_.Hint(type_.strides[other]);
      const bool is_around =
          other != dim && (!step || !size || !stride || *step >= *size * *stride);
      if (is_around && step != 0) scale(type_.strides[other]);
    }
  }

  bool Divide(size_t dim, int64_t ranks) {
    const auto local = Quotient(type_.sizes[dim], ranks);
    if (local) {
      ForEachStrideAround(dim, [&](DimId& stride) {
        if (const auto scaled = Quotient(stride, ranks)) stride = *scaled;
      });
      type_.sizes[dim] = *local;
      return true;
    }
    const auto size = dims_.AsConst(type_.sizes[dim]);
    if (!size) return false;
    Replace(dim, dims_.Const((*size + ranks - 1) / ranks));  // the last ranks have zeros besides
    return true;
  }

  void Replace(size_t dim, DimId rows) {
    const DimId whole = type_.sizes[dim];
    if (const auto size = dims_.Hint(whole); size && *size > 0) {
      ForEachStrideAround(dim, [&](DimId& stride) {
        const DimId steps = dims_.Const(dims_.Hint(stride).value_or(0) / *size);
        if (dims_.ProvablyEqual(dims_.Mul(steps, whole), stride)) stride = dims_.Mul(steps, rows);
      });
    }
    type_.sizes[dim] = rows;
  }

 private:
  DimTable& dims_;
  Type& type_;
};

}  // namespace

Result<TypeId> LocalType(Module& module, TypeId placed, const Mesh& mesh, DimId rows) {
  if (!placed.valid()) return placed;
  Type type = module.types()[placed];
  if (type.kind != TypeKind::kTensor || type.placements.empty()) return placed;
  LocalSizes local(module.dims(), type);
  std::optional<size_t> by_expert;
  for (size_t axis = 0; axis < type.placements.size(); ++axis) {
    const Placement& p = type.placements[axis];
    if (!IsCut(p)) continue;
    const int64_t ranks = mesh.axes()[axis].size;
    const auto dim = static_cast<size_t>(p.dim);
    if (dim >= type.sizes.size())
      return Error("{} has no dimension {}", module.types().ToString(placed), dim);
    if (IsByExpert(p)) {
      if (!rows.valid())
        return Error("{} has rows of unknown experts", module.types().ToString(placed));
      by_expert = dim;
    } else if (!local.Divide(dim, ranks)) {
      return Error("the {} ranks of mesh axis {} may not divide dimension {} of {} evenly", ranks,
                   mesh.axes()[axis].name, dim, module.types().ToString(placed));
    }
  }
  if (by_expert) local.Replace(*by_expert, rows);
  type.placements.clear();
  type.wrapper = {};
  return module.types().Intern(type);
}

std::vector<DimId> PartSizes(Module& module, std::vector<DimId> sizes, const Placements& placements,
                             const Mesh& mesh) {
  DimTable& dims = module.dims();
  for (size_t axis = 0; axis < placements.size(); ++axis) {
    if (!IsCut(placements[axis])) continue;
    DimId& size = sizes[static_cast<size_t>(placements[axis].dim)];
    const int64_t ranks = mesh.axes()[axis].size;
    const auto number = dims.AsConst(size);
    size =
        number ? dims.Const((*number + ranks - 1) / ranks) : dims.FloorDiv(size, dims.Const(ranks));
  }
  return sizes;
}

bool IsLowered(const Graph& graph) {
  if (!graph.output().valid()) return false;
  const auto has_global_type = [&](NodeId node) {
    return !graph.attribute(node, kGlobalTypeAttribute).empty();
  };
  if (has_global_type(graph.output())) return true;
  if (graph.attribute(graph.output(), kMeshAttribute).empty()) return false;
  // A graph of a pipeline stage may read only what other graphs of the stage save.
  return std::ranges::any_of(graph.placeholders(), has_global_type) ||
         std::ranges::any_of(graph.nodes(),
                             [&](NodeId node) { return CollectiveOf(graph, node).has_value(); });
}

double NumElements(const Module& module, const Type& type) {
  double elements = 1;
  for (const DimId size : type.sizes)
    elements *= static_cast<double>(module.dims().Hint(size).value_or(1));
  return elements;
}

}  // namespace strata
