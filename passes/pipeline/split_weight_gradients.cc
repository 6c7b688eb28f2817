#include "passes/pipeline/split_weight_gradients.h"

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "passes/pipeline/slots.h"
#include "passes/pipeline/split_backward.h"

namespace strata {

Result<Changed> SplitWeightGradients::Run(Module& module) {
  bool changed = false;
  for (int64_t stage = 0; module.FindGraph(fmt::format("stage{}", stage)) != nullptr; ++stage) {
    const std::string name = fmt::format("stage{}.backward", stage);
    const Graph* backward = module.FindGraph(name);
    if (backward == nullptr)
      return Error("no graph '{}': split-weight-gradients: run split-backward before it", name);
    if (module.FindGraph(name + "_input") != nullptr) continue;
    STRATA_TRY(const StageSlots slots, StageSlotsOf(*backward));
    JointSignature signature{
        .forward_outputs = {}, .backward_inputs = {}, .saved = StageSlot::Kind::kKept};
    for (size_t i = 0; i < slots.outputs.size(); ++i)
      if (slots.outputs[i].kind == StageSlot::Kind::kGradient)
        signature.forward_outputs.push_back(i);
    if (signature.forward_outputs.empty()) continue;
    STRATA_RETURN_IF_ERROR(
        SplitJoint(module, *backward, signature, name + "_input", name + "_weight"));
    changed = true;
  }
  return Changed(changed);
}

}  // namespace strata
