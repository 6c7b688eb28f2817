#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/rewriter.h"

namespace strata {

/// What an input or output of a stage's graph is to the pipeline: the attribute `slot` of its
/// placeholder, and an element of the attribute `slots` of the output node.
struct StageSlot {
  enum class Kind : uint8_t {
    kInput,       ///< input of the global graph, by name: `input layers.0.attention.wq.weight`
    kActivation,  ///< value that the next stage reads; an input of that stage: `activation 0`
    kGradient,    ///< value that the previous stage's backward reads; an input there: `gradient 0`
    kWhole,       ///< gathered parameter, output of `unshard` by number: `whole 2`
    kSaved,       ///< value of a microbatch between two graphs of one stage: `saved 3`
    kKept,        ///< value between the two halves of a stage's backward: `kept 0`
    kLoss,        ///< `loss`
    kParameterGradient,  ///< by the name of the parameter: `grad layers.0.attention.wq.weight`
    kExtra,              ///< output of the global graph after the gradients: `extra 0`
  };
  Kind kind = Kind::kInput;
  std::string name;  ///< or the number, as text; of kLoss ""

  friend auto operator<=>(const StageSlot&, const StageSlot&) = default;
};

inline constexpr std::string_view kSlotAttribute = "slot";
inline constexpr std::string_view kSlotsAttribute = "slots";

std::string ToString(const StageSlot& slot);
/// Errors: text of another form.
Result<StageSlot> ParseStageSlot(std::string_view text);

/// The name of an input of a traced graph: its attribute `fqn`, or else the name of the node.
std::string StageInputName(const Graph& graph, NodeId placeholder);

/// Of a graph's placeholders, and of its outputs, in order.
struct StageSlots {
  std::vector<StageSlot> inputs, outputs;
};
/// Errors: an input or output without a slot.
Result<StageSlots> StageSlotsOf(const Graph& graph);

void SetInputSlot(Rewriter& rewriter, NodeId placeholder, const StageSlot& slot);
void SetOutputSlots(Rewriter& rewriter, const std::vector<StageSlot>& slots);

}  // namespace strata
