#include <algorithm>
#include <string>

#include "bench/diff_eval/mutations/mutator.h"
#include "ir/ops.h"

namespace strata::bench {

bool Mutator::Delete(NodeId id) {
  for (ValueId operand : graph_.operands(id)) {
    if (graph_.value(operand).type != TypeIdOf(id)) continue;
    Begin();
    Mark(id);
    rewriter_.ReplaceUses(graph_.result(id), operand);
    rewriter_.Erase(id);
    return true;
  }
  return false;
}

bool Mutator::Insert(NodeId id) {
  if (!graph_.HasUses(id) || !TensorOf(graph_.result(id))) return false;
  static constexpr std::string_view kOps[] = {"aten.clone.default", "aten.alias.default",
                                              "aten.detach.default", "aten._to_copy.default"};
  Begin();
  rewriter_.SetCursorAfter(id);
  const Arg args[] = {Arg(graph_.result(id))};
  const NodeId node = Make(kOps[Random(std::size(kOps))], args, TypeIdOf(id), id);
  Mark(node);
  RedirectUses(graph_.result(id), graph_.result(node), node);
  return true;
}

bool Mutator::Attribute(NodeId id) {
  const Node& node = graph_.node(id);
  const auto edited = [&](const Arg& arg) -> std::optional<Arg> {
    switch (arg.kind()) {
      case ArgKind::kInt:
        return Arg::Int(arg.as_int() + 1 + static_cast<int64_t>(Random(7)));
      case ArgKind::kFloat:
        return Arg::Float(arg.as_float() * 2 + 0.5);
      case ArgKind::kBool:
        return Arg::Bool(!arg.as_bool());
      default:
        return std::nullopt;
    }
  };
  for (uint32_t i = 0; i < node.num_args; ++i) {
    const Arg arg = graph_.args(id)[i];
    const bool is_list = arg.kind() == ArgKind::kList && arg.span_size() > 0;
    const std::optional<Arg> change = edited(is_list ? graph_.elements(arg)[0] : arg);
    if (!change) continue;
    Begin();
    Mark(id);
    rewriter_.SetSlot(id, is_list ? arg.span_begin() : node.args_begin + i, *change);
    return true;
  }
  return false;
}

bool Mutator::Target(NodeId id) {
  Begin();
  Mark(id);
  const std::string base(BaseName(graph_.op(id)));
  static constexpr std::string_view kUnary[] = {"aten.tanh.default", "aten.sin.default",
                                                "aten.sigmoid.default", "aten.relu.default"};
  const Node& node = graph_.node(id);
  const bool unary = node.num_args == 1 && node.num_kwargs == 0;
  std::string op =
      unary && Random(2) == 0 ? std::string(kUnary[Random(4)]) : "other." + base + ".default";
  if (op == graph_.op(id)) op = "aten.cos.default";
  rewriter_.SetOp(id, op);
  return true;
}

bool Mutator::Retype(NodeId id) {
  const std::optional<Type> tensor = TensorOf(graph_.result(id));
  if (!tensor) return false;
  const bool resize = Random(3) == 0 && !tensor->sizes.empty();
  const bool propagate = Random(2) == 0;
  const DType dtype = tensor->dtype == DType::kF64 ? DType::kF16 : DType::kF64;
  const auto change = [&](NodeId node) {
    Type type = *TensorOf(graph_.result(node));
    if (resize) {
      type.sizes[0] = module_.dims().Add(type.sizes[0], module_.dims().Const(3));
    } else {
      type.dtype = dtype;
    }
    rewriter_.SetType(graph_.result(node), module_.types().Intern(type));
    Mark(node);
  };
  Begin();
  const TypeId before = TypeIdOf(id);
  change(id);
  NodeId last = id;
  for (int steps = 0; propagate && steps < 3; ++steps) {
    last = OnlyUser(last);
    if (!last.valid() || !IsPlainCall(last) || !IsFree(last) || TypeIdOf(last) != before) break;
    change(last);
  }
  return true;
}

bool Mutator::Rewire(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.num_args == 0 || !graph_.args(id)[0].is_value()) return false;
  const ValueId old_value = graph_.args(id)[0].value();
  NodeId source = graph_.value(old_value).def;
  for (int steps = 0; steps < 200; ++steps) {
    source = graph_.node(source).prev;
    if (!source.valid()) return false;
    if (!IsPlainCall(source) || graph_.result(source) == old_value) continue;
    if (graph_.value(graph_.result(source)).type != graph_.value(old_value).type) continue;
    Begin();
    Mark(id);
    rewriter_.SetSlot(id, node.args_begin, Arg(graph_.result(source)));
    return true;
  }
  return false;
}

bool Mutator::Swap(NodeId id) {
  const Node& node = graph_.node(id);
  if (node.num_args < 2) return false;
  const Arg a = graph_.args(id)[0], b = graph_.args(id)[1];
  if (!a.is_value() || !b.is_value() || a.value() == b.value()) return false;
  Begin();
  Mark(id);
  rewriter_.SetSlot(id, node.args_begin, b);
  rewriter_.SetSlot(id, node.args_begin + 1, a);
  return true;
}

bool Mutator::Reorder(NodeId id) {
  static constexpr int kWindows[] = {5, 40, 400};
  const int window = kWindows[Random(3)];
  NodeId target = graph_.node(id).next;
  int steps = 0;
  for (; steps < window && target.valid() && graph_.node(target).kind != NodeKind::kOutput;
       ++steps) {
    bool uses = false;
    graph_.ForEachOperand(target, [&](ValueId value) { uses |= graph_.value(value).def == id; });
    if (uses) break;
    target = graph_.node(target).next;
  }
  if (steps < 2) return false;
  Begin();
  Mark(id);
  rewriter_.MoveBefore(id, target);
  return true;
}

bool Mutator::Merge(NodeId id) {
  // An equal node further down, or one that is made equal: a copy that then counts as before.
  const auto same = [&](NodeId other) {
    if (!IsPlainCall(other) || graph_.op(other) != graph_.op(id) ||
        TypeIdOf(other) != TypeIdOf(id)) {
      return false;
    }
    const auto a = graph_.args(id), b = graph_.args(other);
    return graph_.node(id).num_kwargs == 0 && graph_.node(other).num_kwargs == 0 &&
           a.size() == b.size() && std::ranges::equal(a, b, [](const Arg& x, const Arg& y) {
             return x.kind() == y.kind() &&
                    ((x.is_value() && x.value() == y.value()) ||
                     (x.kind() == ArgKind::kInt && x.as_int() == y.as_int()));
           });
  };
  NodeId other = graph_.node(id).next;
  for (int steps = 0; steps < 400 && other.valid(); ++steps, other = graph_.node(other).next) {
    if (!IsFree(other) || !same(other)) continue;
    Begin();
    Mark(id);
    Mark(other);
    lineage_.relations.push_back({RelationKind::kMerge, {IdOf(id), IdOf(other)}, {IdOf(id)}});
    rewriter_.ReplaceUses(graph_.result(other), graph_.result(id));
    rewriter_.Erase(other);
    return true;
  }
  return false;
}

bool Mutator::DeadCode(NodeId id) {
  if (!TensorOf(graph_.result(id))) return false;
  Begin();
  rewriter_.SetCursorAfter(id);
  const Arg args[] = {Arg(graph_.result(id))};
  const NodeId node =
      Make(Random(2) == 0 ? "aten.neg.default" : "aten.exp.default", args, TypeIdOf(id), id);
  Mark(node);
  return true;
}

bool Mutator::Inputs(NodeId id) {
  const std::vector<NodeId> inputs = graph_.placeholders();
  if (inputs.size() < 3) return false;
  const NodeId chosen = inputs[Random(inputs.size())];
  switch (Random(3)) {
    case 0: {  // a new one, joined to a value
      if (!graph_.HasUses(id) || !TensorOf(graph_.result(id))) return false;
      Begin();
      rewriter_.SetCursorBefore(chosen);
      NodeSpec spec;
      spec.kind = NodeKind::kPlaceholder;
      const std::string name = "new_input_" + std::to_string(lineage_.rewrites.size());
      spec.name = name;
      const NodeId input = rewriter_.Create(spec, From::Source());
      rewriter_.SetType(graph_.result(input), TypeIdOf(id));
      Mark(input);
      rewriter_.SetCursorAfter(id);
      const Arg args[] = {Arg(graph_.result(id)), Arg(graph_.result(input))};
      const NodeId sum = Make("aten.add.Tensor", args, TypeIdOf(id), id);
      Mark(sum);
      RedirectUses(graph_.result(id), graph_.result(sum), sum);
      return true;
    }
    case 1:  // dropped: another of its type is read
      for (NodeId other : inputs) {
        if (other == chosen || !IsFree(chosen) || TypeIdOf(other) != TypeIdOf(chosen)) continue;
        if (UsesOf(graph_.result(chosen)).size() != 1) continue;
        const NodeId user = OnlyUser(chosen);
        if (!IsFree(user) || !IsPlainCall(user)) continue;
        Begin();
        Mark(user);
        rewriter_.SetSlot(user, UsesOf(graph_.result(chosen))[0].slot, Arg(graph_.result(other)));
        Mark(chosen);
        rewriter_.Erase(chosen);
        return true;
      }
      return false;
    default: {  // exchanged with the next one
      const NodeId next = graph_.node(chosen).next;
      if (graph_.node(next).kind != NodeKind::kPlaceholder || !IsFree(chosen)) return false;
      if (TypeIdOf(next) == TypeIdOf(chosen)) return false;
      Begin();
      Mark(chosen);
      rewriter_.MoveBefore(next, chosen);
      return true;
    }
  }
}

bool Mutator::Outputs(NodeId id) {
  if (!ReturnsList() || !IsFree(graph_.output())) return false;
  std::vector<Arg> elements = Results();
  if (elements.size() < 2) return false;
  const size_t place = Random(elements.size());
  const auto at = elements.begin() + static_cast<std::ptrdiff_t>(place);
  switch (Random(3)) {
    case 0:
      elements.insert(at, Arg(graph_.result(id)));
      break;
    case 1:
      // What a dropped result leaves without users stays.
      elements.erase(at);
      break;
    default:
      std::swap(elements[place], elements[(place + 1) % elements.size()]);
  }
  Begin();
  SetResults(elements);
  return true;
}

bool Mutator::Offload(NodeId id) {
  const auto uses = UsesOf(graph_.result(id));
  if (uses.empty() || !TensorOf(graph_.result(id))) return false;
  if (std::ranges::any_of(uses, [&](Use use) { return use.user == graph_.output(); })) return false;
  Begin();
  const std::vector<NodeId> inputs = graph_.placeholders();
  if (inputs.empty()) return false;
  rewriter_.SetCursorAfter(inputs.back());
  NodeSpec spec;
  spec.kind = NodeKind::kPlaceholder;
  const std::string name = "saved_" + std::to_string(lineage_.rewrites.size());
  spec.name = name;
  const NodeId input = rewriter_.Create(spec, From::Source());
  rewriter_.SetType(graph_.result(input), TypeIdOf(id));
  Mark(input);
  Mark(id);
  lineage_.relations.push_back({RelationKind::kBecameInput, {IdOf(id)}, {IdOf(input)}});
  rewriter_.ReplaceUses(graph_.result(id), graph_.result(input));
  // Nodes that become unused are deleted too.
  std::vector<NodeId> dead{id};
  while (!dead.empty()) {
    const NodeId node = dead.back();
    dead.pop_back();
    std::vector<ValueId> operands = graph_.operands(node);
    std::ranges::sort(operands);
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    if (node != id) Mark(node);
    rewriter_.Erase(node);
    for (ValueId operand : operands) {
      const NodeId def = graph_.value(operand).def;
      if (IsPlainCall(def) && !graph_.HasUses(def)) dead.push_back(def);
    }
  }
  return true;
}

}  // namespace strata::bench
