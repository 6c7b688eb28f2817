#include "diff/graph/type_text.h"

#include <string_view>
#include <vector>

#include "diff/graph/hash.h"
#include "ir/module.h"

namespace strata {
namespace {

TypeProperty Plain(std::string_view text) {
  return {std::string(text), HashText(text)};
}

/// A size: equal expressions under the same names are equal, however they are written.
void AddDim(const DimTable& dims, DimId dim, const SymbolNames& symbols, TypeProperty& property) {
  dims.Print(dim, property.text);
  property.hash = Mix(property.hash, dim.valid() ? symbols.Hash(dims, dim) : 0);
}

TypeProperty DimsProperty(const DimTable& dims, const std::vector<DimId>& list,
                          const SymbolNames& symbols) {
  TypeProperty property{"[", list.size()};
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) property.text += ", ";
    AddDim(dims, list[i], symbols, property);
  }
  property.text += ']';
  return property;
}

/// `S(0)R`, one after the other as DTensor prints them.
std::string PlacementText(const Module& module, const std::vector<Placement>& placements) {
  std::string text;
  for (const Placement& placement : placements)
    PrintPlacement(placement, module.strings(), text);
  return text;
}

}  // namespace

TypeText TypeTextOf(const Listing& listing, EntityId id, const SymbolNames& symbols) {
  TypeText result;
  const ValueId value = listing.value(id);
  if (!value.valid()) return result;
  const Module& module = listing.root().module();
  const TypeId type_id = listing.graph(id).value(value).type;
  if (!type_id.valid()) return result;
  const Type& type = module.types()[type_id];
  switch (type.kind) {
    case TypeKind::kOpaque:
      result.dtype = Plain(module.str(type.text));
      break;
    case TypeKind::kSymInt:
      result.dtype = Plain("Sym");
      result.shape = TypeProperty{};
      AddDim(module.dims(), type.dim, symbols, *result.shape);
      break;
    case TypeKind::kTensor:
      if (type.dtype != DType::kUnknown) result.dtype = Plain(ShortName(type.dtype));
      result.shape = DimsProperty(module.dims(), type.sizes, symbols);
      if (type.has_strides) result.strides = DimsProperty(module.dims(), type.strides, symbols);
      if (type.device.valid()) result.device = Plain(module.str(type.device));
      if (!type.placements.empty()) {
        result.placement = Plain(PlacementText(module, type.placements));
      }
      break;
  }
  return result;
}

}  // namespace strata
