#include "prove/stage_signature.h"

#include <string>

#include <fmt/format.h>

#include "passes/pipeline/graph_copier.h"

namespace strata::prove {
namespace {

using Kind = StageSlot::Kind;

constexpr int64_t kGlobal = -1;  // what belongs to no stage

SlotKey KeyOfInput(int64_t stage, const StageSlot& slot) {
  const bool is_global = slot.kind == Kind::kInput || slot.kind == Kind::kParameterGradient;
  return {is_global ? kGlobal : stage, slot};
}

SlotKey KeyOfOutput(int64_t stage, const StageSlot& slot) {
  if (slot.kind == Kind::kActivation) return {stage + 1, slot};
  if (slot.kind == Kind::kGradient) return {stage - 1, slot};
  const bool is_of_stage =
      slot.kind == Kind::kWhole || slot.kind == Kind::kSaved || slot.kind == Kind::kKept;
  return {is_of_stage ? stage : kGlobal, slot};
}

/// Of a step its loss and gradients by parameter, then the other outputs.
StageSignature OfWhole(const Graph& graph, Returned returned) {
  StageSignature signature;
  std::vector<SlotKey> gradients;
  for (const NodeId node : graph.placeholders()) {
    const std::string name = StageInputName(graph, node);
    signature.inputs.emplace_back(kGlobal, StageSlot{.kind = Kind::kInput, .name = name});
    if (graph.attribute(node, "input") == "parameter")
      gradients.emplace_back(kGlobal, StageSlot{.kind = Kind::kParameterGradient, .name = name});
  }
  if (returned == Returned::kStep) {
    signature.outputs = {{kGlobal, StageSlot{.kind = Kind::kLoss, .name = ""}}};
    signature.outputs.insert(signature.outputs.end(), gradients.begin(), gradients.end());
  }
  const size_t first_extra = signature.outputs.size();
  for (size_t i = first_extra; i < OutputsOf(graph).size(); ++i) {
    signature.outputs.emplace_back(
        kGlobal, StageSlot{.kind = Kind::kExtra, .name = fmt::format("{}", i - first_extra)});
  }
  return signature;
}

}  // namespace

Result<StageSignature> StageSignatureOf(const Graph& graph, int64_t stage, Returned returned) {
  if (graph.attribute(graph.output(), kSlotsAttribute).empty()) return OfWhole(graph, returned);
  STRATA_TRY(const StageSlots slots, StageSlotsOf(graph));
  StageSignature signature;
  for (const StageSlot& slot : slots.inputs)
    signature.inputs.push_back(KeyOfInput(stage, slot));
  for (const StageSlot& slot : slots.outputs)
    signature.outputs.push_back(KeyOfOutput(stage, slot));
  return signature;
}

}  // namespace strata::prove
