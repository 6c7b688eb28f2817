#include "ir/substitution.h"

#include <optional>
#include <vector>

namespace strata {

DimId Substitution::operator()(DimId dim) {
  if (!dim.valid()) return dim;
  if (const auto known = dims_.find(dim); known != dims_.end()) return known->second;
  DimTable& dims = module_.dims();
  const DimKind kind = dims.kind(dim);
  if (kind == DimKind::kConst || kind == DimKind::kSymbol) return dim;
  const std::vector<DimId> before(dims.operands(dim).begin(), dims.operands(dim).end());
  std::vector<DimId> after;
  for (const DimId operand : before)
    after.push_back((*this)(operand));
  DimId result = dim;
  if (after != before) {
    const StrId head = kind == DimKind::kCall ? module_.Intern(dims.name(dim)) : StrId{};
    result = dims.Make(kind, after, head);
  }
  dims_.emplace(dim, result);
  return result;
}

TypeId Substitution::operator()(TypeId type) {
  if (!type.valid()) return type;
  if (const auto known = types_.find(type); known != types_.end()) return known->second;
  Type copy = module_.types()[type];
  for (DimId& size : copy.sizes)
    size = (*this)(size);
  for (DimId& stride : copy.strides)
    stride = (*this)(stride);
  copy.dim = (*this)(copy.dim);
  const TypeId result = module_.types().Intern(copy);
  types_.emplace(type, result);
  return result;
}

Arg Substitution::operator()(const Arg& arg) {
  if (arg.kind() != ArgKind::kDim) return arg;
  const DimId dim = (*this)(arg.dim());
  const std::optional<int64_t> number = module_.dims().AsConst(dim);
  return number ? Arg::Int(*number) : Arg::Dim(dim);
}

}  // namespace strata
