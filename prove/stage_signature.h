#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/pipeline/slots.h"

namespace strata::prove {

/// A value between graphs: the stage that reads it, and its slot.
using SlotKey = std::pair<int64_t, StageSlot>;

/// What the inputs and outputs of a graph are, in order.
struct StageSignature {
  std::vector<SlotKey> inputs, outputs;
};

/// What a graph without slots returns.
enum class Returned : uint8_t {
  kStep,      ///< a loss, the gradients of its parameters, further outputs by their number
  kNumbered,  ///< outputs by their number, as an update does
};

/// Of a graph of `stage` with slots, or of one without. Errors: those of StageSlotsOf.
Result<StageSignature> StageSignatureOf(const Graph& graph, int64_t stage, Returned returned);

}  // namespace strata::prove
