#include <algorithm>
#include <map>
#include <string>

#include "bench/diff_eval/mutations/mutator.h"
#include "ir/ops.h"

namespace strata::bench {

bool Mutator::Recompute(NodeId id) {
  // A user far from the node gets copies of the node and of up to two nodes above it.
  const std::vector<Use> uses = UsesOf(graph_.result(id));
  if (uses.size() < 2 || graph_.operands(id).empty()) return false;
  const Use last = uses.back();
  if (last.user == graph_.output() || !IsFree(last.user)) return false;
  std::vector<NodeId> chain{id};
  while (chain.size() < 1 + Random(3)) {
    const NodeId above = graph_.value(graph_.operands(chain.back())[0]).def;
    if (!IsPlainCall(above) || !IsFree(above) || graph_.operands(above).empty()) break;
    chain.push_back(above);
  }
  Begin();
  rewriter_.SetCursorBefore(last.user);
  ValueId copied_below, copy_below;
  for (size_t i = chain.size(); i-- > 0;) {
    const NodeId copy = rewriter_.Clone(chain[i]);
    if (copied_below.valid()) {
      for (Use use : UsesOf(copied_below)) {
        if (use.user == copy) rewriter_.ReplaceUse(use, copy_below);
      }
    }
    lineage_.relations.push_back(
        {RelationKind::kClone, {IdOf(chain[i])}, {IdOf(chain[i]), IdOf(copy)}});
    copied_below = graph_.result(chain[i]);
    copy_below = graph_.result(copy);
    Touch(chain[i]);
    Mark(copy);
  }
  rewriter_.ReplaceUse(last, copy_below);
  Mark(last.user);
  return true;
}

bool Mutator::Chunk(NodeId id) {
  // A chain of nodes of one type, each read by the next one alone.
  const std::optional<Type> tensor = TensorOf(graph_.result(id));
  if (!tensor || tensor->sizes.empty()) return false;
  const std::optional<int64_t> size = module_.dims().AsConst(tensor->sizes[0]);
  const size_t parts = size_t{2} << Random(2);
  if (!size || *size < static_cast<int64_t>(parts) || *size % static_cast<int64_t>(parts) != 0)
    return false;
  const std::vector<ValueId> operands = graph_.operands(id);
  if (operands.empty() || graph_.value(operands[0]).type != TypeIdOf(id)) return false;
  const std::vector<NodeId> body = ChainFrom(id, 12);
  // Of a short body the parts have little in common with the whole.
  if (body.size() < 4 || !graph_.HasUses(body.back())) return false;

  Type part_type = *tensor;
  part_type.sizes[0] = module_.dims().Const(*size / static_cast<int64_t>(parts));
  const TypeId part = module_.types().Intern(part_type);
  Begin();
  rewriter_.SetCursorBefore(id);
  const Arg split_args[] = {Arg(operands[0]), Arg::Int(*size / static_cast<int64_t>(parts))};
  const NodeId split =
      MakeSplit("aten.split.Tensor", split_args, std::vector<TypeId>(parts, part), "part", id);
  Mark(split);
  RedirectInside(operands[0], graph_.result(split, 0), {id});
  rewriter_.SetCursorAfter(body.back());
  std::vector<Arg> joined{Arg(graph_.result(body.back()))};
  std::vector<Lineage::Relation> clones;
  for (NodeId node : body)
    clones.push_back({RelationKind::kClone, {IdOf(node)}, {IdOf(node)}});
  for (size_t k = 1; k < parts; ++k) {
    const std::vector<NodeId> copies =
        CloneChain(body, graph_.result(split, 0), graph_.result(split, k));
    for (size_t i = 0; i < body.size(); ++i) {
      rewriter_.SetType(graph_.result(copies[i]), part);
      Mark(copies[i]);
      clones[i].after.push_back(IdOf(copies[i]));
    }
    joined.emplace_back(graph_.result(copies.back()));
  }
  for (NodeId node : body) {
    rewriter_.SetType(graph_.result(node), part);
    Mark(node);
  }
  const Arg cat_args[] = {rewriter_.MakeSpan(ArgKind::kList, joined), Arg::Int(0)};
  const NodeId cat =
      Make("aten.cat.default", cat_args, module_.types().Intern(*tensor), body.back());
  Mark(cat);
  RedirectUses(graph_.result(body.back()), graph_.result(cat), cat);
  lineage_.relations.insert(lineage_.relations.end(), clones.begin(), clones.end());
  return true;
}

bool Mutator::Fuse(NodeId id) {
  std::vector<NodeId> chain{id};
  const size_t wanted = 2 + Random(3);
  while (chain.size() < wanted) {
    const NodeId next = OnlyUser(chain.back());
    if (!next.valid() || !IsPlainCall(next) || !IsFree(next)) break;
    chain.push_back(next);
  }
  if (chain.size() < 2 || !graph_.HasUses(chain.back())) return false;
  ReplaceByFused(chain);
  return true;
}

bool Mutator::Decompose(NodeId id) {
  const std::vector<ValueId> operands = graph_.operands(id);
  if (operands.empty() || !graph_.HasUses(id)) return false;
  if (Random(3) == 0) return DecomposeLong(id);
  Begin();
  rewriter_.SetCursorBefore(id);
  // Other operators on the way: `addmm` as `mm` and `add`, `silu` as `sigmoid` and `mul`.
  std::vector<Arg> args;
  for (size_t i = operands.size() > 2 ? 1 : 0; i < operands.size(); ++i)
    args.emplace_back(operands[i]);
  const std::string base(BaseName(graph_.op(id)));
  const NodeId first = Make("decomposed." + base + "_core.default", args, TypeIdOf(id), id);
  const Arg rest[] = {Arg(operands[0]), Arg(graph_.result(first))};
  const std::string_view join = base == "mul" ? "aten.add.Tensor" : "aten.mul.Tensor";
  const NodeId second = Make(join, rest, TypeIdOf(id), id);
  Mark(id);
  Mark(first);
  Mark(second);
  lineage_.relations.push_back({RelationKind::kReplace, {IdOf(id)}, {IdOf(first), IdOf(second)}});
  rewriter_.ReplaceUses(graph_.result(id), graph_.result(second));
  rewriter_.Erase(id);
  return true;
}

void Mutator::CastAll() {
  // The operator with most calls of one float operand type.
  std::map<std::string, std::vector<NodeId>> calls;
  for (NodeId id : graph_.nodes()) {
    if (!IsPlainCall(id) || graph_.operands(id).empty() || !graph_.HasUses(id)) continue;
    const std::optional<Type> result = TensorOf(graph_.result(id));
    const std::optional<Type> operand = TensorOf(graph_.operands(id)[0]);
    if (!result || !operand || result->dtype != DType::kF32 || operand->dtype != DType::kF32)
      continue;
    calls[std::string(graph_.op(id))].push_back(id);
  }
  if (calls.empty()) return;
  std::vector<const std::vector<NodeId>*> by_size;
  for (const auto& [op, ids] : calls)
    by_size.push_back(&ids);
  std::ranges::stable_sort(by_size,
                           [](const auto* a, const auto* b) { return a->size() > b->size(); });
  const std::vector<NodeId> chosen = *by_size[Random(std::min<size_t>(3, by_size.size()))];
  for (NodeId id : chosen) {
    Begin();
    Mark(id);
    const auto cast = [&](ValueId value, DType dtype) {
      Type type = *TensorOf(value);
      type.dtype = dtype;
      const Arg args[] = {Arg(value), Arg::DType(dtype)};
      const NodeId node =
          Make("prims.convert_element_type.default", args, module_.types().Intern(type), id);
      Mark(node);
      return node;
    };
    rewriter_.SetCursorBefore(id);
    const ValueId operand = graph_.operands(id)[0];
    const NodeId down = cast(operand, DType::kBF16);
    for (Use use : UsesOf(operand)) {
      if (use.user == id) rewriter_.ReplaceUse(use, graph_.result(down));
    }
    Type type = *TensorOf(graph_.result(id));
    type.dtype = DType::kBF16;
    rewriter_.SetType(graph_.result(id), module_.types().Intern(type));
    rewriter_.SetCursorAfter(id);
    const NodeId up = cast(graph_.result(id), DType::kF32);
    RedirectUses(graph_.result(id), graph_.result(up), up);
  }
}

void Mutator::ReplaceAll() {
  std::map<std::string, std::vector<NodeId>> calls;
  for (NodeId id : graph_.nodes()) {
    if (IsPlainCall(id)) calls[std::string(graph_.op(id))].push_back(id);
  }
  std::vector<std::string> ops;
  for (const auto& [op, ids] : calls) {
    if (ids.size() >= 3) ops.push_back(op);
  }
  if (ops.empty()) return;
  const std::string op = ops[Random(ops.size())];
  for (NodeId id : calls[op]) {
    Begin();
    Mark(id);
    rewriter_.SetOp(id, "other." + std::string(BaseName(op)) + ".default");
  }
}

void Mutator::Relinearize() {
  std::vector<int32_t> missing(static_cast<size_t>(graph_.node_bound()), 0);
  std::vector<NodeId> ready;
  const auto is_inner = [&](NodeId id) {
    const NodeKind kind = graph_.node(id).kind;
    return kind != NodeKind::kPlaceholder && kind != NodeKind::kOutput;
  };
  for (NodeId id : graph_.nodes()) {
    if (!is_inner(id)) continue;
    graph_.ForEachOperand(id, [&](ValueId value) {
      missing[static_cast<size_t>(id.index)] += is_inner(graph_.value(value).def) ? 1 : 0;
    });
    if (missing[static_cast<size_t>(id.index)] == 0) ready.push_back(id);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const size_t pick = Random(ready.size());
    const NodeId id = ready[pick];
    ready[pick] = ready.back();
    ready.pop_back();
    order.push_back(id);
    for (size_t i = 0; i < graph_.node(id).num_results; ++i) {
      for (Use use : graph_.uses(graph_.result(id, i))) {
        if (is_inner(use.user) && --missing[static_cast<size_t>(use.user.index)] == 0) {
          ready.push_back(use.user);
        }
      }
    }
  }
  for (NodeId id : order)
    rewriter_.MoveBefore(id, graph_.output());
}

}  // namespace strata::bench
