#include "passes/pipeline/split_backward.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/by_node.h"
#include "ir/ops.h"
#include "passes/core/written_memory.h"
#include "passes/pipeline/calls.h"
#include "passes/pipeline/graph_copier.h"
#include "passes/pipeline/slots.h"

namespace strata {
namespace {

class JointSplitter {
 public:
  JointSplitter(const Graph& joint, const JointSignature& signature)
      : joint_(joint),
        signature_(signature),
        inputs_(joint.placeholders()),
        outputs_(OutputsOf(joint)),
        written_(WrittenMemory(joint)) {}

  Status Run(Graph& forward, Graph& backward) {
    STRATA_RETURN_IF_ERROR(CheckSignature());
    STRATA_TRY(slots_, StageSlotsOf(joint_));
    FindDependents();
    STRATA_RETURN_IF_ERROR(FindForward());
    STRATA_RETURN_IF_ERROR(CheckForward());
    FindBackward();
    FindSaved();
    for (const ValueId value : saved_)
      STRATA_RETURN_IF_ERROR(CheckHeld(joint_, value));
    WriteForward(forward);
    WriteBackward(backward);
    return Ok();
  }

 private:
  using Marks = IdVector<NodeId, bool>;

  Status CheckSignature() const {
    if (signature_.forward_outputs.empty())
      return Error("num_fwd_outputs must be positive: graph {}", joint_.name_text());
    for (const size_t output : signature_.forward_outputs) {
      if (output < outputs_.size()) continue;
      return Error("num_fwd_outputs exceeds traced graph output count {}: graph {}: output {}",
                   outputs_.size(), joint_.name_text(), output);
    }
    std::set<size_t> known;
    for (const size_t input : signature_.backward_inputs) {
      if (input >= inputs_.size()) {
        return Error(
            "backward_only_input_indices must reference traced graph placeholders: {} of "
            "{}: graph {}",
            input, inputs_.size(), joint_.name_text());
      }
      if (!known.insert(input).second) {
        return Error("backward_only_input_indices must be unique: {}: graph {}", input,
                     joint_.name_text());
      }
    }
    return Ok();
  }

  Marks NoNodes() const { return ByNode<bool>(joint_); }

  bool ReadsAny(NodeId node, const Marks& marks) const {
    bool reads = false;
    joint_.ForEachOperand(node,
                          [&](ValueId operand) { reads |= marks[joint_.value(operand).def]; });
    return reads;
  }

  /// What depends on inputs of backward, through operands or memory.
  void FindDependents() {
    is_dependent_ = NoNodes();
    for (const size_t input : signature_.backward_inputs)
      is_dependent_[inputs_[input]] = true;
    std::set<ValueId> dependent_memory;
    for (const NodeId node : joint_.nodes()) {
      if (!IsCall(joint_, node)) continue;
      bool depends = ReadsAny(node, is_dependent_);
      joint_.ForEachOperand(node, [&](ValueId operand) {
        depends |= dependent_memory.contains(OwnerOf(joint_, operand));
      });
      is_dependent_[node] = depends;
      if (!depends || !Mutates(joint_, node)) continue;
      joint_.ForEachOperand(
          node, [&](ValueId operand) { dependent_memory.insert(OwnerOf(joint_, operand)); });
    }
  }

  /// Of the node that makes the last forward output.
  NodeId LastForwardOutput() const {
    const IdVector<NodeId, int32_t> order = PositionsOf(joint_);
    NodeId last;
    for (const size_t i : signature_.forward_outputs) {
      if (!outputs_[i]) continue;
      const NodeId def = joint_.value(*outputs_[i]).def;
      if (!last.valid() || order[def] > order[last]) last = def;
    }
    return last;
  }

  /// Writes that forward makes, of nodes whose phase is not known.
  Status AddForwardWrites() {
    const NodeId last = LastForwardOutput();
    for (const NodeId node : joint_.nodes()) {
      const bool is_write = IsCall(joint_, node) && Mutates(joint_, node);
      if (is_write && joint_.node(node).phase == Phase::kUnknown) {
        if (const NodeId base = joint_.value(WrittenBy(node)).def; IsBackwardInput(base)) {
          return Error(
              "Forward mutation cannot target a backward-only input: graph {}: node {} writes {}: "
              "copy it first",
              joint_.name_text(), joint_.name(node), joint_.name(base));
        }
        if (!is_dependent_[node]) is_forward_[node] = true;
      }
      if (node == last) break;
    }
    return Ok();
  }

  ValueId WrittenBy(NodeId node) const {
    for (size_t i = 0; i < joint_.node(node).num_results; ++i)
      if (const ValueId owner = joint_.value(joint_.result(node, i)).alias_of; owner.valid())
        return owner;
    return OwnerOf(joint_, joint_.operands(node).front());
  }

  bool IsBackwardInput(NodeId node) const {
    return std::ranges::any_of(signature_.backward_inputs,
                               [&](size_t input) { return inputs_[input] == node; });
  }

  Status FindForward() {
    is_forward_ = NoNodes();
    for (const size_t i : signature_.forward_outputs)
      if (outputs_[i]) is_forward_[joint_.value(*outputs_[i]).def] = true;
    for (const NodeId node : joint_.nodes()) {
      const Phase phase = joint_.node(node).phase;
      const bool is_early = phase == Phase::kForward || phase == Phase::kLoss;
      if (IsCall(joint_, node) && is_early && !is_dependent_[node]) is_forward_[node] = true;
    }
    STRATA_RETURN_IF_ERROR(AddForwardWrites());
    AddOperands(is_forward_);
    return Ok();
  }

  /// Adds what marked nodes read, and what wrote that memory before.
  void AddOperands(Marks& marks) const {
    std::set<ValueId> memory;
    const std::vector<NodeId> nodes = joint_.nodes().Snapshot();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (!IsCall(joint_, *node)) continue;
      if (!marks[*node] && Mutates(joint_, *node) && memory.contains(WrittenBy(*node)))
        marks[*node] = true;
      if (!marks[*node]) continue;
      joint_.ForEachOperand(*node, [&](ValueId operand) {
        marks[joint_.value(operand).def] = true;
        const ValueId owner = OwnerOf(joint_, operand);
        if (written_.contains(owner)) memory.insert(owner);
      });
    }
  }

  Status CheckForward() const {
    for (const size_t input : signature_.backward_inputs) {
      if (!is_forward_[inputs_[input]]) continue;
      return Error(
          "Forward graph outputs require backward-only inputs: graph {}: {}: return as forward "
          "outputs what does not depend on gradients",
          joint_.name_text(), joint_.name(inputs_[input]));
    }
    return Ok();
  }

  /// What backward outputs need beside forward, and effects that forward does not have.
  void FindBackward() {
    is_backward_ = NoNodes();
    for (const size_t i : BackwardOutputs())
      if (outputs_[i]) is_backward_[joint_.value(*outputs_[i]).def] = true;
    for (const NodeId node : joint_.nodes()) {
      if (!IsCall(joint_, node) || !IsImpure(joint_, node)) continue;
      const bool is_late = is_dependent_[node] || joint_.node(node).phase == Phase::kBackward;
      (is_late ? is_backward_ : is_forward_)[node] = true;
    }
    AddOperands(is_forward_);
    const std::vector<NodeId> nodes = joint_.nodes().Snapshot();
    for (const NodeId node : IdsOf(is_forward_))
      if (is_forward_[node]) is_backward_[node] = false;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (!IsCall(joint_, *node) || !is_backward_[*node]) continue;
      joint_.ForEachOperand(*node, [&](ValueId operand) {
        const NodeId def = joint_.value(operand).def;
        if (!is_forward_[def]) is_backward_[def] = true;
      });
    }
  }

  /// Costs next to nothing: views, constants, numbers.
  bool IsRepeated(NodeId node) const {
    if (joint_.node(node).kind == NodeKind::kGetAttr) return true;
    if (joint_.node(node).kind != NodeKind::kCall) return false;
    const OpTraits traits = TraitsOf(joint_.op(node));
    if (traits.mutates || traits.random || IsImpure(joint_, node)) return false;
    if (joint_.operands(node).empty()) return !written_.contains(joint_.result(node));
    if (traits.view) return true;
    const TypeId type = joint_.value(joint_.result(node)).type;
    return type.valid() && joint_.module().types()[type].kind == TypeKind::kSymInt;
  }

  /// Lets backward read a value of forward.
  void Need(ValueId value) {
    const NodeId def = joint_.value(value).def;
    if (!IsCall(joint_, def)) {
      is_read_[def] = true;
    } else if (is_forward_[def] && !IsRepeated(def)) {
      saved_.insert(value);
    } else if (is_forward_[def] && !is_repeated_[def]) {
      is_repeated_[def] = true;
      joint_.ForEachOperand(def, [&](ValueId operand) { Need(operand); });
    }
  }

  void FindSaved() {
    is_repeated_ = NoNodes();
    is_read_ = NoNodes();
    for (const NodeId node : joint_.nodes()) {
      if (!IsCall(joint_, node) || !is_backward_[node]) continue;
      joint_.ForEachOperand(node, [&](ValueId operand) { Need(operand); });
    }
    for (const size_t i : BackwardOutputs())
      if (outputs_[i]) Need(*outputs_[i]);
  }

  std::vector<ValueId> SavedInOrder() const {
    const IdVector<NodeId, int32_t> order = PositionsOf(joint_);
    std::vector<ValueId> saved(saved_.begin(), saved_.end());
    std::ranges::sort(saved, {}, [&](ValueId value) {
      return std::pair(order[joint_.value(value).def], joint_.result_index(value));
    });
    return saved;
  }

  StageSlot SavedSlot(size_t number) const {
    return {.kind = signature_.saved, .name = std::to_string(number)};
  }

  std::vector<size_t> BackwardOutputs() const {
    std::vector<size_t> outputs;
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (std::ranges::find(signature_.forward_outputs, i) == signature_.forward_outputs.end())
        outputs.push_back(i);
    return outputs;
  }

  void WriteForward(Graph& graph) const {
    GraphCopier copier(joint_, graph);
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (is_forward_[inputs_[i]]) copier.AddInput(joint_.result(inputs_[i]), slots_.inputs[i]);
    for (const NodeId node : joint_.nodes())
      if (IsCall(joint_, node) && is_forward_[node]) copier.Copy(node);
    std::vector<std::optional<ValueId>> outputs;
    std::vector<StageSlot> slots;
    for (const size_t i : signature_.forward_outputs) {
      outputs.push_back(outputs_[i]);
      slots.push_back(slots_.outputs[i]);
    }
    size_t number = 0;
    for (const ValueId value : SavedInOrder()) {
      outputs.emplace_back(value);
      slots.push_back(SavedSlot(number++));
    }
    copier.SetOutputs(outputs, slots);
  }

  void WriteBackward(Graph& graph) const {
    GraphCopier copier(joint_, graph);
    const auto add_inputs = [&](bool backward_only) {
      for (size_t i = 0; i < inputs_.size(); ++i)
        if (is_read_[inputs_[i]] && IsBackwardInput(inputs_[i]) == backward_only)
          copier.AddInput(joint_.result(inputs_[i]), slots_.inputs[i]);
    };
    add_inputs(false);
    size_t number = 0;
    for (const ValueId value : SavedInOrder())
      copier.AddInput(value, SavedSlot(number++));
    add_inputs(true);
    for (const NodeId node : joint_.nodes()) {
      if (!IsCall(joint_, node)) continue;
      if (is_backward_[node] || is_repeated_[node]) copier.Copy(node);
    }
    std::vector<std::optional<ValueId>> outputs;
    std::vector<StageSlot> slots;
    for (const size_t i : BackwardOutputs()) {
      outputs.push_back(outputs_[i]);
      slots.push_back(slots_.outputs[i]);
    }
    copier.SetOutputs(outputs, slots);
  }

  const Graph& joint_;
  const JointSignature& signature_;
  const std::vector<NodeId> inputs_;
  const std::vector<std::optional<ValueId>> outputs_;
  const std::set<ValueId> written_;
  StageSlots slots_;
  Marks is_dependent_, is_forward_, is_backward_;
  Marks is_repeated_;  // forward nodes that backward repeats
  Marks is_read_;      // inputs that backward reads
  std::set<ValueId> saved_;
};

bool IsForwardOutput(const StageSlot& slot) {
  return slot.kind == StageSlot::Kind::kLoss || slot.kind == StageSlot::Kind::kExtra ||
         slot.kind == StageSlot::Kind::kActivation;
}

}  // namespace

Status SplitJoint(Module& module, const Graph& joint, const JointSignature& signature,
                  std::string_view forward, std::string_view backward) {
  JointSplitter splitter(joint, signature);
  Graph& forward_graph = module.AddGraph(forward);
  Graph& backward_graph = module.AddGraph(backward);
  return splitter.Run(forward_graph, backward_graph);
}

Result<Changed> SplitBackward::Run(Module& module) {
  bool changed = false;
  for (int64_t stage = 0;; ++stage) {
    const std::string name = fmt::format("stage{}", stage);
    const Graph* joint = module.FindGraph(name);
    if (joint == nullptr) break;
    if (const Graph* compute = module.FindGraph(name + ".compute")) joint = compute;
    const std::string forward = name + ".forward", backward = name + ".backward";
    if (module.FindGraph(forward) != nullptr) continue;
    STRATA_TRY(const StageSlots slots, StageSlotsOf(*joint));
    JointSignature signature;
    for (size_t i = 0; i < slots.inputs.size(); ++i)
      if (slots.inputs[i].kind == StageSlot::Kind::kGradient)
        signature.backward_inputs.push_back(i);
    for (size_t i = 0; i < slots.outputs.size(); ++i)
      if (IsForwardOutput(slots.outputs[i])) signature.forward_outputs.push_back(i);
    STRATA_RETURN_IF_ERROR(SplitJoint(module, *joint, signature, forward, backward));
    changed = true;
  }
  return Changed(changed);
}

}  // namespace strata
