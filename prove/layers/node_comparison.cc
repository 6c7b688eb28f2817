#include "prove/layers/node_comparison.h"

#include <algorithm>
#include <unordered_map>

#include "ir/module.h"
#include "passes/core/chunk_attributes.h"

namespace strata::prove {
namespace {

bool IsUnbacked(const Module& module, DimId dim) {
  if (!dim.valid() || module.dims().kind(dim) != DimKind::kSymbol) return false;
  const StrId name = module.strings().Find(module.dims().name(dim));
  const Symbol* symbol = module.dims().FindSymbol(name);
  return symbol != nullptr && !symbol->backed;
}

}  // namespace

bool NodeComparison::IsSame(NodeId from, NodeId to) {
  const Node &x = a_.node(from), &y = b_.node(to);
  if (x.kind != y.kind || x.op != y.op || x.num_args != y.num_args ||
      x.num_kwargs != y.num_kwargs || x.num_results != y.num_results ||
      x.returns_tuple != y.returns_tuple)
    return false;
  for (size_t i = 0; i < x.num_results; ++i)
    if (!IsSameType(a_.value(a_.result(from, i)).type, b_.value(b_.result(to, i)).type))
      return false;
  for (size_t i = 0; i < x.num_args; ++i)
    if (!IsSameArg(a_.args(from)[i], b_.args(to)[i])) return false;
  for (size_t i = 0; i < x.num_kwargs; ++i) {
    const NamedArg p = a_.kwarg(from, i), q = b_.kwarg(to, i);
    if (p.name != q.name || !IsSameArg(p.value, q.value)) return false;
  }
  return a_.attribute(from, kChunkRoleAttribute) == b_.attribute(to, kChunkRoleAttribute);
}

bool NodeComparison::IsSameType(TypeId x, TypeId y) {
  if (!x.valid() || !y.valid()) return x == y;
  const Module& module = a_.module();
  const Type &p = module.types()[x], &q = module.types()[y];
  const bool is_read = p.kind == TypeKind::kSymInt && IsUnbacked(module, p.dim) &&
                       q.kind == TypeKind::kSymInt && IsUnbacked(module, q.dim);
  if (is_read) {
    read_.emplace(p.dim, q.dim);
    read_of_b_.emplace(q.dim, p.dim);
  }
  const auto is_same = [&](DimId d, DimId e) { return IsSameDim(d, e); };
  const bool have_same_dims = std::ranges::equal(p.sizes, q.sizes, is_same) &&
                              std::ranges::equal(p.strides, q.strides, is_same) &&
                              IsSameDim(p.dim, q.dim);
  if (!have_same_dims) return false;
  Type renamed = p;
  renamed.sizes = q.sizes;
  renamed.strides = q.strides;
  renamed.dim = q.dim;
  return renamed == q;
}

bool NodeComparison::IsSameDim(DimId x, DimId y) const {
  if (!x.valid() || !y.valid()) return x == y;
  const DimTable& dims = a_.module().dims();
  if (dims.kind(x) != dims.kind(y)) return false;
  if (dims.kind(x) == DimKind::kConst) return x == y;
  if (dims.kind(x) == DimKind::kSymbol) {
    const auto found = read_.find(x), of_b = read_of_b_.find(y);
    const DimId partner = found == read_.end() ? x : found->second;
    return partner == y && (of_b == read_of_b_.end() ? y : of_b->second) == x;
  }
  const bool is_same_function = dims.kind(x) != DimKind::kCall || dims.name(x) == dims.name(y);
  return is_same_function && std::ranges::equal(dims.operands(x), dims.operands(y),
                                                [&](DimId d, DimId e) { return IsSameDim(d, e); });
}

std::optional<bool> AreEqualNumbers(const Arg& x, const Arg& y) {
  switch (x.kind()) {
    case ArgKind::kNone:
      return true;
    case ArgKind::kInt:
      return x.as_int() == y.as_int();
    case ArgKind::kFloat:
      return x.as_float() == y.as_float();
    case ArgKind::kBool:
      return x.as_bool() == y.as_bool();
    case ArgKind::kDType:
      return x.dtype() == y.dtype();
    default:
      return std::nullopt;
  }
}

bool NodeComparison::IsSameArg(const Arg& x, const Arg& y) const {
  if (x.kind() != y.kind()) return false;
  if (const std::optional<bool> equal = AreEqualNumbers(x, y)) return *equal;
  switch (x.kind()) {
    case ArgKind::kValue:
      return same_value_(x.value(), y.value());
    case ArgKind::kDim:
      return IsSameDim(x.dim(), y.dim());
    case ArgKind::kString:
    case ArgKind::kDevice:
    case ArgKind::kRaw:
      return x.str() == y.str();
    case ArgKind::kGraph:
      return IsSameBody(a_.module().graph(x.graph()), a_.module().graph(y.graph()));
    default:
      break;
  }
  const auto p = a_.elements(x), q = b_.elements(y);
  return std::ranges::equal(p, q, [&](const Arg& c, const Arg& d) { return IsSameArg(c, d); });
}

/// Bodies read nothing but their inputs: values match by their node's place.
bool NodeComparison::IsSameBody(const Graph& a, const Graph& b) {
  if (a.id() == b.id()) return true;
  std::unordered_map<int32_t, ValueId> partners;
  NodeComparison nodes(a, b, [&](ValueId x, ValueId y) {
    const auto found = partners.find(x.index);
    return found != partners.end() && found->second == y;
  });
  auto other = b.nodes().begin();
  for (const NodeId node : a.nodes()) {
    if (other == b.nodes().end() || !nodes.IsSame(node, *other)) return false;
    for (size_t i = 0; i < a.node(node).num_results; ++i)
      partners.emplace(a.result(node, i).index, b.result(*other, i));
    ++other;
  }
  return other == b.nodes().end();
}

}  // namespace strata::prove
