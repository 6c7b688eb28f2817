#include <algorithm>
#include <string>

#include "bench/diff_eval/mutations/mutator.h"
#include "ir/ops.h"

namespace strata::bench {

/// Replaces a tree of nodes without other users by one node.
bool Mutator::FuseRegion(NodeId id) {
  constexpr size_t kMost = 8;
  std::vector<NodeId> region{id};
  const auto is_inside = [&](NodeId node) {
    return std::ranges::find(region, node) != region.end();
  };
  bool branches = false;
  for (size_t next = 0; next < region.size() && region.size() < kMost; ++next) {
    int above = 0;
    for (ValueId operand : graph_.operands(region[next])) {
      const NodeId def = graph_.value(operand).def;
      if (!IsPlainCall(def) || !IsFree(def) || is_inside(def)) continue;
      const std::vector<Use> uses = UsesOf(operand);
      if (!std::ranges::all_of(uses, [&](Use use) { return is_inside(use.user); })) continue;
      region.push_back(def);
      ++above;
    }
    branches |= above > 1;
  }
  if (!branches || !graph_.HasUses(id)) return false;
  const std::vector<int32_t> order = OrderOf(graph_);
  std::ranges::sort(region, {},
                    [&](NodeId node) { return order[static_cast<size_t>(node.index)]; });
  ReplaceByFused(region);
  return true;
}

/// One node stands for several, the last of which alone is read by others.
void Mutator::ReplaceByFused(const std::vector<NodeId>& nodes) {
  std::vector<Arg> operands;
  std::string op = "fused";
  for (NodeId node : nodes) {
    op += "_" + std::string(BaseName(graph_.op(node)));
    for (ValueId value : graph_.operands(node)) {
      const bool inside =
          std::ranges::any_of(nodes, [&](NodeId other) { return graph_.result(other) == value; });
      const bool known =
          std::ranges::any_of(operands, [&](const Arg& arg) { return arg.value() == value; });
      if (!inside && !known) operands.emplace_back(value);
    }
  }
  Begin();
  rewriter_.SetCursorBefore(nodes.back());
  const NodeId fused =
      Make("fused." + op + ".default", operands, TypeIdOf(nodes.back()), nodes.back());
  Lineage::Relation relation{RelationKind::kReplace, {}, {IdOf(fused)}};
  for (NodeId node : nodes) {
    Mark(node);
    relation.before.push_back(IdOf(node));
  }
  Mark(fused);
  lineage_.relations.push_back(std::move(relation));
  rewriter_.ReplaceUses(graph_.result(nodes.back()), graph_.result(fused));
  for (size_t i = nodes.size(); i-- > 0;)
    rewriter_.Erase(nodes[i]);
}

/// A short body is computed part by part, and the parts are joined: side by side, or as a sum.
///
///   before  y = f(x)
///   after   p = split(x)  y = cat([f(p[0]), f(p[1]), …])      or f(p[0]) + f(p[1]) + …
bool Mutator::ReplaceByParts(NodeId id) {
  const std::optional<Type> tensor = TensorOf(graph_.result(id));
  const std::vector<ValueId> operands = graph_.operands(id);
  if (!tensor || tensor->sizes.empty() || operands.empty()) return false;
  if (graph_.value(operands[0]).type != TypeIdOf(id)) return false;
  const bool sums = Random(2) == 0;
  const size_t dim = sums ? tensor->sizes.size() - 1 : 0;
  const auto parts = size_t{2} << Random(3);
  const std::optional<int64_t> size = module_.dims().AsConst(tensor->sizes[dim]);
  const auto count = static_cast<int64_t>(parts);
  if (!size || *size < count || *size % count != 0) return false;
  const std::vector<NodeId> body = ChainFrom(id, 1 + Random(3));
  if (!graph_.HasUses(body.back())) return false;

  Type smaller = *tensor;
  smaller.sizes[dim] = module_.dims().Const(*size / count);
  const TypeId part = module_.types().Intern(smaller), whole = TypeIdOf(id);
  Begin();
  Lineage::Relation relation{RelationKind::kReplace, {}, {}};
  const auto made = [&](NodeId node) {
    Mark(node);
    relation.after.push_back(IdOf(node));
  };
  rewriter_.SetCursorAfter(body.back());
  const Arg split_args[] = {Arg(operands[0]), Arg::Int(*size / count),
                            Arg::Int(static_cast<int64_t>(dim))};
  const NodeId split =
      MakeSplit("aten.split.Tensor", split_args, std::vector<TypeId>(parts, part), "part", id);
  made(split);
  std::vector<Arg> pieces;
  for (size_t k = 0; k < parts; ++k) {
    const std::vector<NodeId> copies = CloneChain(body, operands[0], graph_.result(split, k));
    for (NodeId copy : copies) {
      rewriter_.SetType(graph_.result(copy), sums && copy == copies.back() ? whole : part);
      made(copy);
    }
    pieces.emplace_back(graph_.result(copies.back()));
  }
  const NodeId joined = JoinParts(pieces, sums, whole, body.back(), relation);
  rewriter_.ReplaceUses(graph_.result(body.back()), graph_.result(joined));
  for (NodeId node : body) {
    Mark(node);
    relation.before.push_back(IdOf(node));
  }
  for (size_t i = body.size(); i-- > 0;)
    rewriter_.Erase(body[i]);
  lineage_.relations.push_back(std::move(relation));
  return true;
}

/// Parts side by side, or their sum, at the cursor.
NodeId Mutator::JoinParts(const std::vector<Arg>& parts, bool sums, TypeId whole, NodeId like,
                          Lineage::Relation& relation) {
  NodeId joined;
  const auto make = [&](std::string_view op, std::span<const Arg> args) {
    joined = Make(op, args, whole, like);
    Mark(joined);
    relation.after.push_back(IdOf(joined));
  };
  if (!sums) {
    const Arg args[] = {rewriter_.MakeSpan(ArgKind::kList, parts), Arg::Int(0)};
    make("aten.cat.default", args);
    return joined;
  }
  for (size_t k = 1; k < parts.size(); ++k) {
    const Arg args[] = {k == 1 ? parts[0] : Arg(graph_.result(joined)), parts[k]};
    make("aten.add.Tensor", args);
  }
  return joined;
}

/// A node becomes many, as softmax and layer norms do.
bool Mutator::DecomposeLong(NodeId id) {
  const std::vector<ValueId> operands = graph_.operands(id);
  if (operands.empty() || !graph_.HasUses(id)) return false;
  Begin();
  Lineage::Relation relation{RelationKind::kReplace, {IdOf(id)}, {}};
  rewriter_.SetCursorBefore(id);
  const auto make = [&](std::string_view op, std::span<const Arg> args) {
    const NodeId node = Make(op, args, TypeIdOf(id), id);
    Mark(node);
    relation.after.push_back(IdOf(node));
    return graph_.result(node);
  };
  std::vector<Arg> args;
  for (ValueId operand : operands)
    args.emplace_back(operand);
  const ValueId centre = make("prims.decomposed_mean.default", args);
  const Arg sub_args[] = {Arg(operands[0]), Arg(centre)};
  const ValueId shifted = make("prims.sub.default", sub_args);
  const Arg exp_args[] = {Arg(shifted)};
  const ValueId exponential = make("prims.exp.default", exp_args);
  const Arg sum_args[] = {Arg(exponential), Arg::Int(-1)};
  const ValueId sum = make("prims.sum.default", sum_args);
  const Arg div_args[] = {Arg(exponential), Arg(sum)};
  const ValueId result = make("prims.div.default", div_args);
  Mark(id);
  lineage_.relations.push_back(std::move(relation));
  rewriter_.ReplaceUses(graph_.result(id), result);
  rewriter_.Erase(id);
  return true;
}

}  // namespace strata::bench
