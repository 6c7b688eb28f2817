#include "prove/layers/node_comparison.h"

#include <algorithm>
#include <unordered_map>

#include "ir/module.h"
#include "passes/expert/chunk_attributes.h"

namespace strata::prove {

bool NodeComparison::IsSame(NodeId from, NodeId to) const {
  const Node &x = a_.node(from), &y = b_.node(to);
  if (x.kind != y.kind || x.op != y.op || x.num_args != y.num_args ||
      x.num_kwargs != y.num_kwargs || x.num_results != y.num_results ||
      x.returns_tuple != y.returns_tuple)
    return false;
  for (size_t i = 0; i < x.num_results; ++i)
    if (a_.value(a_.result(from, i)).type != b_.value(b_.result(to, i)).type) return false;
  for (size_t i = 0; i < x.num_args; ++i)
    if (!IsSameArg(a_.args(from)[i], b_.args(to)[i])) return false;
  for (size_t i = 0; i < x.num_kwargs; ++i) {
    const NamedArg p = a_.kwarg(from, i), q = b_.kwarg(to, i);
    if (p.name != q.name || !IsSameArg(p.value, q.value)) return false;
  }
  return a_.attribute(from, kChunkRoleAttribute) == b_.attribute(to, kChunkRoleAttribute);
}

bool NodeComparison::IsSameArg(const Arg& x, const Arg& y) const {
  if (x.kind() != y.kind()) return false;
  switch (x.kind()) {
    case ArgKind::kNone:
      return true;
    case ArgKind::kValue:
      return same_value_(x.value(), y.value());
    case ArgKind::kInt:
      return x.as_int() == y.as_int();
    case ArgKind::kFloat:
      return x.as_float() == y.as_float();
    case ArgKind::kBool:
      return x.as_bool() == y.as_bool();
    case ArgKind::kDim:
      return x.dim() == y.dim();
    case ArgKind::kDType:
      return x.dtype() == y.dtype();
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
  const NodeComparison nodes(a, b, [&](ValueId x, ValueId y) {
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
