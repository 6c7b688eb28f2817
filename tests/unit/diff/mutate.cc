#include "tests/unit/diff/mutate.h"

#include <algorithm>
#include <map>
#include <queue>
#include <random>

#include "ir/ops.h"
#include "ir/rewriter.h"

namespace strata::testing {
namespace {

class Mutator {
 public:
  Mutator(Module& module, double rate, uint32_t seed)
      : module_(module), graph_(module.graph({0})), rewriter_(graph_), rate_(rate), random_(seed) {}

  void Run(Mutation mutation) {
    if (mutation == Mutation::kRelinearize) return Relinearize();
    const std::vector<NodeId> nodes = graph_.nodes().Snapshot();
    const auto wanted =
        std::max<size_t>(1, static_cast<size_t>(rate_ * static_cast<double>(nodes.size())));
    size_t done = 0;
    for (size_t tries = 0; done < wanted && tries < 20 * wanted; ++tries) {
      const NodeId id = nodes[random_() % nodes.size()];
      if (touched_[id.index] || graph_.node(id).kind != NodeKind::kCall) continue;
      if (!Apply(mutation, id)) continue;
      touched_[id.index] = true;
      ++done;
    }
  }

 private:
  bool Apply(Mutation mutation, NodeId id) {
    switch (mutation) {
      case Mutation::kDelete:
        return Delete(id);
      case Mutation::kInsert:
        return Insert(id);
      case Mutation::kEditLiteral:
        return EditLiteral(id);
      case Mutation::kReplaceOp:
        rewriter_.SetOp(id, "mutant." + std::string(BaseName(graph_.op(id))) + ".default");
        return true;
      case Mutation::kRetype:
        return Retype(id);
      case Mutation::kRewire:
        return Rewire(id);
      case Mutation::kSwap:
        return Swap(id);
      case Mutation::kMove:
        return Move(id);
      case Mutation::kClone:
        return CloneForOneUser(id);
      case Mutation::kFuse:
        return Fuse(id);
      case Mutation::kDecompose:
        return Decompose(id);
      case Mutation::kAddInput:
        return AddInput(id);
      case Mutation::kRelinearize:
        break;
    }
    return false;
  }

  bool IsPlain(NodeId id) const {
    return !graph_.node(id).returns_tuple && graph_.node(id).num_results == 1;
  }

  bool Delete(NodeId id) {
    const std::vector<ValueId> operands = graph_.operands(id);
    if (!IsPlain(id) || operands.size() != 1) return false;
    rewriter_.ReplaceUses(graph_.result(id), operands[0]);
    rewriter_.Erase(id);
    return true;
  }

  bool Insert(NodeId id) {
    if (!IsPlain(id) || !graph_.HasUses(id)) return false;
    const ValueId value = graph_.result(id);
    std::vector<Use> uses;
    for (Use use : graph_.uses(value))
      uses.push_back(use);
    rewriter_.SetCursorAfter(id);
    const ValueId copy = Make("mutant.copy.default", {value}, id);
    for (Use use : uses)
      rewriter_.ReplaceUse(use, copy);
    return true;
  }

  bool EditLiteral(NodeId id) {
    const Node& node = graph_.node(id);
    for (uint32_t i = 0; i < node.num_args; ++i) {
      const Arg& arg = graph_.args(id)[i];
      if (arg.kind() == ArgKind::kInt) {
        rewriter_.SetSlot(id, node.args_begin + i, Arg::Int(arg.as_int() + 17));
        return true;
      }
      if (arg.kind() != ArgKind::kList || arg.span_size() == 0) continue;
      if (graph_.elements(arg)[0].kind() != ArgKind::kInt) continue;
      const int64_t number = graph_.elements(arg)[0].as_int();
      rewriter_.SetSlot(id, arg.span_begin(), Arg::Int(number + 17));
      return true;
    }
    return false;
  }

  bool Retype(NodeId id) {
    const ValueId value = graph_.result(id);
    if (!IsPlain(id) || !graph_.value(value).type.valid()) return false;
    Type type = module_.types()[graph_.value(value).type];
    if (type.kind != TypeKind::kTensor) return false;
    type.dtype = type.dtype == DType::kF64 ? DType::kF16 : DType::kF64;
    rewriter_.SetType(value, module_.types().Intern(type));
    return true;
  }

  bool Rewire(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.num_args == 0 || !graph_.args(id)[0].is_value()) return false;
    const ValueId old_value = graph_.args(id)[0].value();
    NodeId source = graph_.value(old_value).def;
    for (int steps = 0; steps < 60; ++steps) {
      source = graph_.node(source).prev;
      if (!source.valid()) return false;
      if (!IsPlain(source) || graph_.node(source).kind != NodeKind::kCall) continue;
      const ValueId candidate = graph_.result(source);
      if (graph_.value(candidate).type != graph_.value(old_value).type) continue;
      rewriter_.SetSlot(id, node.args_begin, Arg(candidate));
      return true;
    }
    return false;
  }

  bool Swap(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.num_args < 2) return false;
    const Arg a = graph_.args(id)[0], b = graph_.args(id)[1];
    if (!a.is_value() || !b.is_value() || a.value() == b.value()) return false;
    rewriter_.SetSlot(id, node.args_begin, b);
    rewriter_.SetSlot(id, node.args_begin + 1, a);
    return true;
  }

  bool Move(NodeId id) {
    std::vector<int32_t> order = OrderOf(graph_);
    NodeId target = graph_.node(id).next;
    int steps = 0;
    for (; steps < 40 && target.valid() && graph_.node(target).kind == NodeKind::kCall; ++steps) {
      bool uses = false;
      graph_.ForEachOperand(target, [&](ValueId value) { uses |= graph_.value(value).def == id; });
      if (uses) break;
      target = graph_.node(target).next;
    }
    if (steps < 2) return false;
    rewriter_.MoveBefore(id, target);
    return true;
  }

  bool CloneForOneUser(NodeId id) {
    if (!IsPlain(id) || graph_.value(graph_.result(id)).num_uses < 2) return false;
    Use last{};
    for (Use use : graph_.uses(graph_.result(id)))
      last = use;
    rewriter_.SetCursorBefore(last.user);
    const NodeId copy = rewriter_.Clone(id);
    rewriter_.ReplaceUse(last, graph_.result(copy));
    return true;
  }

  /// A call of `op` at the cursor with the type of `like`.
  ValueId Make(std::string_view op, std::initializer_list<ValueId> operands, NodeId like) {
    const std::vector<Arg> args(operands.begin(), operands.end());
    return MakeFrom(op, args, like);
  }
  ValueId MakeFrom(std::string_view op, std::span<const Arg> args, NodeId like) {
    NodeSpec spec;
    spec.op = op;
    spec.args = args;
    const NodeId node = rewriter_.Create(spec, From{like});
    rewriter_.SetType(graph_.result(node), graph_.value(graph_.result(like)).type);
    return graph_.result(node);
  }

  bool Fuse(NodeId id) {
    if (!IsPlain(id) || graph_.value(graph_.result(id)).num_uses != 1) return false;
    const NodeId user = (*graph_.uses(graph_.result(id)).begin()).user;
    if (graph_.node(user).kind != NodeKind::kCall || !IsPlain(user)) return false;
    std::vector<Arg> operands;
    for (ValueId value : graph_.operands(id))
      operands.emplace_back(value);
    for (ValueId value : graph_.operands(user)) {
      if (value != graph_.result(id)) operands.emplace_back(value);
    }
    rewriter_.SetCursorBefore(user);
    const ValueId fused = MakeFrom("mutant.fused.default", operands, user);
    rewriter_.ReplaceUses(graph_.result(user), fused);
    rewriter_.Erase(user);
    rewriter_.Erase(id);
    touched_[user.index] = true;
    return true;
  }

  bool Decompose(NodeId id) {
    const std::vector<ValueId> operands = graph_.operands(id);
    if (!IsPlain(id) || operands.empty()) return false;
    rewriter_.SetCursorBefore(id);
    std::vector<Arg> args(operands.begin(), operands.end());
    const ValueId first = MakeFrom("mutant.first.default", args, id);
    const ValueId second = Make("mutant.second.default", {first, operands[0]}, id);
    rewriter_.ReplaceUses(graph_.result(id), second);
    rewriter_.Erase(id);
    return true;
  }

  bool AddInput(NodeId id) {
    if (!IsPlain(id) || !graph_.HasUses(id)) return false;
    const ValueId value = graph_.result(id);
    const std::vector<NodeId> inputs = graph_.placeholders();
    rewriter_.SetCursorBefore(inputs[random_() % inputs.size()]);
    NodeSpec spec;
    spec.kind = NodeKind::kPlaceholder;
    const std::string name = "mutant_input_" + std::to_string(id.index);
    spec.name = name;
    const NodeId input = rewriter_.Create(spec, From::Source());
    rewriter_.SetType(graph_.result(input), graph_.value(value).type);
    std::vector<Use> uses;
    for (Use use : graph_.uses(value))
      uses.push_back(use);
    rewriter_.SetCursorAfter(id);
    const ValueId sum = Make("aten.add.Tensor", {value, graph_.result(input)}, id);
    for (Use use : uses)
      rewriter_.ReplaceUse(use, sum);
    return true;
  }

  /// A random topological order; inputs and the output stay where they are.
  void Relinearize() {
    std::vector<int32_t> missing(static_cast<size_t>(graph_.node_bound()), 0);
    std::vector<NodeId> ready, calls;
    for (NodeId id : graph_.nodes()) {
      if (graph_.node(id).kind != NodeKind::kCall) continue;
      calls.push_back(id);
      graph_.ForEachOperand(id, [&](ValueId value) {
        missing[static_cast<size_t>(id.index)] +=
            graph_.node(graph_.value(value).def).kind == NodeKind::kCall;
      });
      if (missing[static_cast<size_t>(id.index)] == 0) ready.push_back(id);
    }
    std::vector<NodeId> order;
    while (!ready.empty()) {
      const size_t pick = random_() % ready.size();
      const NodeId id = ready[pick];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
      order.push_back(id);
      for (size_t i = 0; i < graph_.node(id).num_results; ++i) {
        for (Use use : graph_.uses(graph_.result(id, i))) {
          const bool is_call = graph_.node(use.user).kind == NodeKind::kCall;
          if (is_call && --missing[static_cast<size_t>(use.user.index)] == 0) {
            ready.push_back(use.user);
          }
        }
      }
    }
    for (NodeId id : order)
      rewriter_.MoveBefore(id, graph_.output());
  }

  Module& module_;
  Graph& graph_;
  Rewriter rewriter_;
  const double rate_;
  std::mt19937 random_;
  std::map<int32_t, bool> touched_;
};

}  // namespace

std::string_view ToString(Mutation mutation) {
  static constexpr std::string_view kNames[kNumMutations] = {
      "delete", "insert", "edit literal", "replace op", "retype",    "rewire",     "swap",
      "move",   "clone",  "fuse",         "decompose",  "add input", "relinearize"};
  return kNames[static_cast<size_t>(mutation)];
}

void Mutate(Module& module, Mutation mutation, double rate, uint32_t seed) {
  Mutator(module, rate, seed).Run(mutation);
}

void RenameAll(Module& module) {
  Graph& graph = module.graph({0});
  Rewriter rewriter(graph);
  // Two rounds, so that no new name meets an old one.
  for (const bool final_round : {false, true}) {
    std::map<std::string, int> counters;
    const auto next = [&](const std::string& base) {
      const int number = counters[base]++;
      std::string name = final_round ? base : "temporary_" + base;
      if (number > 0 || !final_round) name += "_" + std::to_string(number);
      return name;
    };
    for (NodeId id : graph.nodes()) {
      const Node& node = graph.node(id);
      if (node.kind == NodeKind::kOutput) continue;
      const std::string base =
          node.kind == NodeKind::kPlaceholder ? "primals" : std::string(BaseName(graph.op(id)));
      rewriter.SetName(id, next(base));
      for (size_t i = 0; node.returns_tuple && i < node.num_results; ++i) {
        const ValueId element = graph.result(id, i);
        if (graph.value(element).name.valid()) rewriter.SetElementName(element, next("getitem"));
      }
    }
  }
}

}  // namespace strata::testing
