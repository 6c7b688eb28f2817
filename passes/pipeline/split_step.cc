#include "passes/pipeline/split_step.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "ir/rewriter.h"
#include "passes/pipeline/graph_copier.h"
#include "passes/pipeline/slots.h"
#include "passes/pipeline/split_backward.h"

namespace strata {
namespace {

constexpr std::string_view kStepGraphName = "step";
constexpr std::string_view kForwardGraph = "step.forward", kBackwardGraph = "step.backward";

/// Inputs by name. Outputs by number: nothing but their order says what they are.
void SetSlots(Graph& step, size_t num_outputs) {
  Rewriter rewriter(step);
  for (const NodeId node : step.placeholders()) {
    SetInputSlot(rewriter, node,
                 {.kind = StageSlot::Kind::kInput, .name = StageInputName(step, node)});
  }
  std::vector<StageSlot> slots;
  for (size_t i = 0; i < num_outputs; ++i)
    slots.push_back({.kind = StageSlot::Kind::kExtra, .name = std::to_string(i)});
  SetOutputSlots(rewriter, slots);
}

}  // namespace

Result<Changed> SplitStep::Run(Module& module) {
  Graph* const step = module.FindGraph(kStepGraphName);
  if (step == nullptr || module.FindGraph(kForwardGraph) != nullptr) return Changed::kNo;
  const bool has_backward = std::ranges::any_of(step->nodes().Snapshot(), [&](NodeId node) {
    return step->node(node).phase == Phase::kBackward;
  });
  if (!has_backward) return Changed::kNo;
  const std::vector<std::optional<ValueId>> outputs = OutputsOf(*step);
  JointSignature signature;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool is_backward =
        outputs[i] && step->node(step->value(*outputs[i]).def).phase == Phase::kBackward;
    if (!is_backward) signature.forward_outputs.push_back(i);
  }
  SetSlots(*step, outputs.size());
  STRATA_RETURN_IF_ERROR(SplitJoint(module, *step, signature, kForwardGraph, kBackwardGraph));
  return Changed::kYes;
}

}  // namespace strata
