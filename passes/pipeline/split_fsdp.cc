#include "passes/pipeline/split_fsdp.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ir/by_node.h"
#include "ir/ops.h"
#include "passes/core/collectives.h"
#include "passes/core/fsdp_patterns.h"
#include "passes/pipeline/calls.h"
#include "passes/pipeline/graph_copier.h"
#include "passes/pipeline/slots.h"

namespace strata {
namespace {

/// Sums of what it reads are sums of what it returns.
bool IsLinear(const Graph& graph, NodeId node) {
  if (IsWait(graph, node) || TraitsOf(graph.op(node)).view) return true;
  if (CollectiveOf(graph, node)) {
    const std::string_view op = ReduceOpOf(graph, node);
    return op.empty() || op == "sum" || op == "avg";
  }
  const std::string_view name = BaseName(graph.op(node));
  return name == "_to_copy" || name == "clone";
}

/// Whether microbatches can be added in the type.
bool IsWide(const Graph& graph, ValueId value) {
  const TypeId type = graph.value(value).type;
  if (!type.valid()) return false;
  const DType dtype = graph.module().types()[type].dtype;
  return dtype == DType::kF32 || dtype == DType::kF64;
}

class FsdpSplitter {
 public:
  FsdpSplitter(const Graph& joint, StageSlots slots)
      : joint_(joint),
        slots_(std::move(slots)),
        inputs_(joint.placeholders()),
        outputs_(OutputsOf(joint)),
        unshards_(ByNode<bool>(joint)),
        reduces_(ByNode<bool>(joint)),
        unreduced_(outputs_.size()) {}

  Status Find() {
    for (const NodeId input : inputs_) {
      if (joint_.attribute(input, "input") != "parameter") continue;
      STRATA_TRY(const std::vector<ValueId> wholes, UnshardOutputs(joint_, input));
      for (const ValueId whole : wholes) {
        wholes_.push_back(whole);
        MarkChain(joint_.value(whole).def);
      }
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (slots_.outputs[i].kind == StageSlot::Kind::kParameterGradient && outputs_[i])
        FindReduction(i);
    return Ok();
  }

  bool has_unshard() const { return !wholes_.empty(); }
  bool has_reduce() const { return num_reduced_ > 0; }

  void WriteUnshard(Graph& graph) const {
    GraphCopier copier(joint_, graph);
    AddInputs(unshards_, {}, copier);
    CopyNodes(unshards_, copier);
    std::vector<StageSlot> slots;
    for (size_t i = 0; i < wholes_.size(); ++i)
      slots.push_back(WholeSlot(i));
    copier.SetOutputs(std::vector<std::optional<ValueId>>(wholes_.begin(), wholes_.end()), slots);
  }

  void WriteCompute(Graph& graph) const {
    IdVector<NodeId, bool> stays = ByNode<bool>(joint_);
    for (const NodeId node : joint_.nodes())
      stays[node] = IsCall(joint_, node) && !unshards_[node] && !reduces_[node];
    std::vector<std::optional<ValueId>> outputs = outputs_;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (unreduced_[i]) outputs[i] = unreduced_[i];
    GraphCopier copier(joint_, graph);
    AddInputs(stays, outputs, copier);
    for (size_t i = 0; i < wholes_.size(); ++i)
      copier.AddInput(wholes_[i], WholeSlot(i));
    CopyNodes(stays, copier);
    copier.SetOutputs(outputs, slots_.outputs);
  }

  void WriteReduce(Graph& graph) const {
    GraphCopier copier(joint_, graph);
    std::vector<std::optional<ValueId>> outputs;
    std::vector<StageSlot> slots;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!unreduced_[i]) continue;
      outputs.push_back(outputs_[i]);
      slots.push_back(slots_.outputs[i]);
      const NodeId input = copier.AddInput(*unreduced_[i], slots_.outputs[i]);
      copier.rewriter().SetType(graph.result(input), SumType(graph.module(), *unreduced_[i]));
    }
    CopyNodes(reduces_, copier);
    copier.SetOutputs(outputs, slots);
  }

 private:
  static StageSlot WholeSlot(size_t number) {
    return {.kind = StageSlot::Kind::kWhole, .name = std::to_string(number)};
  }

  /// From what makes a whole parameter back to the parameter. Nothing else reads the chain.
  void MarkChain(NodeId node) {
    if (!IsCall(joint_, node) || unshards_[node]) return;
    unshards_[node] = true;
    joint_.ForEachOperand(node, [&](ValueId operand) { MarkChain(joint_.value(operand).def); });
  }

  void FindReduction(size_t output) {
    const ValueId unreduced = ReductionInput(joint_, *outputs_[output]);
    if (!unreduced.valid() || !IsWide(joint_, unreduced)) return;
    std::vector<NodeId> chain;
    for (NodeId node = joint_.value(*outputs_[output]).def; node != joint_.value(unreduced).def;
         node = OnlyInputOf(joint_, node)) {
      if (!IsLinear(joint_, node)) return;
      chain.push_back(node);
    }
    for (const NodeId node : chain)
      reduces_[node] = true;
    unreduced_[output] = unreduced;
    ++num_reduced_;
  }

  /// Of the sum of several microbatches' gradients.
  TypeId SumType(Module& module, ValueId unreduced) const {
    Type type = module.types()[joint_.value(unreduced).type];
    type.strides.clear();
    int64_t stride = 1;
    for (auto size = type.sizes.rbegin(); size != type.sizes.rend(); ++size) {
      type.strides.insert(type.strides.begin(), module.dims().Const(stride));
      stride *= std::max<int64_t>(1, module.dims().AsConst(*size).value_or(1));
    }
    type.dim = {};
    return module.types().Intern(type);
  }

  void AddInputs(const IdVector<NodeId, bool>& readers,
                 const std::vector<std::optional<ValueId>>& outputs, GraphCopier& copier) const {
    IdVector<NodeId, bool> is_read = ByNode<bool>(joint_);
    for (const NodeId node : joint_.nodes()) {
      if (!readers[node]) continue;
      joint_.ForEachOperand(node,
                            [&](ValueId operand) { is_read[joint_.value(operand).def] = true; });
    }
    for (const std::optional<ValueId>& output : outputs)
      if (output) is_read[joint_.value(*output).def] = true;
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (is_read[inputs_[i]]) copier.AddInput(joint_.result(inputs_[i]), slots_.inputs[i]);
  }

  void CopyNodes(const IdVector<NodeId, bool>& wanted, GraphCopier& copier) const {
    for (const NodeId node : joint_.nodes())
      if (IsCall(joint_, node) && wanted[node]) copier.Copy(node);
  }

  const Graph& joint_;
  const StageSlots slots_;
  const std::vector<NodeId> inputs_;
  const std::vector<std::optional<ValueId>> outputs_;
  std::vector<ValueId> wholes_;
  IdVector<NodeId, bool> unshards_, reduces_;      // nodes of the graphs of these names
  std::vector<std::optional<ValueId>> unreduced_;  // by output
  size_t num_reduced_ = 0;
};

}  // namespace

Result<Changed> SplitFsdp::Run(Module& module) {
  bool changed = false;
  for (int64_t stage = 0;; ++stage) {
    const std::string name = fmt::format("stage{}", stage);
    const Graph* joint = module.FindGraph(name);
    if (joint == nullptr) break;
    if (module.FindGraph(name + ".compute") != nullptr) continue;
    STRATA_TRY(StageSlots slots, StageSlotsOf(*joint));
    FsdpSplitter splitter(*joint, std::move(slots));
    STRATA_RETURN_IF_ERROR(splitter.Find());
    if (!splitter.has_unshard() && !splitter.has_reduce()) continue;
    if (splitter.has_unshard()) splitter.WriteUnshard(module.AddGraph(name + ".unshard"));
    splitter.WriteCompute(module.AddGraph(name + ".compute"));
    if (splitter.has_reduce()) splitter.WriteReduce(module.AddGraph(name + ".reduce"));
    changed = true;
  }
  return Changed(changed);
}

}  // namespace strata
