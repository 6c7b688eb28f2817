#pragma once
#include <string>
#include <string_view>

#include "passes/pipeline/slots.h"
#include "tests/support/graphs.h"

namespace strata::testing {

/// What a stage takes and gives: `inputs -> outputs`.
inline std::string SlotsText(const Module& module, std::string_view graph) {
  const StageSlots slots = OrDie(StageSlotsOf(*module.FindGraph(graph)));
  std::string text;
  for (const StageSlot& slot : slots.inputs)
    text += (text.empty() ? "" : "; ") + ToString(slot);
  text += " ->";
  for (const StageSlot& slot : slots.outputs)
    text += (text.ends_with('>') ? " " : "; ") + ToString(slot);
  return text;
}

}  // namespace strata::testing
