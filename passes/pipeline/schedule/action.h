#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace strata {

/// What a rank does for a stage.
enum class ActionType : uint8_t {
  kForward,          ///< `F`
  kBackward,         ///< `B`: gradients of the stage's inputs and of its parameters
  kBackwardInput,    ///< `I`: of its inputs
  kBackwardWeight,   ///< `W`: of its parameters, after `I`
  kUnshard,          ///< `UNSHARD`: gather the stage's parameters
  kReshard,          ///< `RESHARD`: free what was gathered
  kReduceGradient,   ///< `REDUCE_GRAD`: of all microbatches, once
  kSendForward,      ///< `SEND_F`: activations to the next stage
  kReceiveForward,   ///< `RECV_F`: activations of the previous stage
  kSendBackward,     ///< `SEND_B`: gradients to the previous stage
  kReceiveBackward,  ///< `RECV_B`: gradients of the next stage
  kOverlap,          ///< `OVERLAP_F_B`: a forward and a backward at once, the `parts`
};
/// The letters above. Source: torch.distributed.pipelining.schedules.
std::string_view ToString(ActionType type);
/// Of an action of one microbatch: F, B, I, W and those that send and receive.
bool HasMicrobatch(ActionType type);
/// F, B, I or W.
bool IsCompute(ActionType type);

/// One action of a pipeline schedule.
struct Action {
  int64_t stage = -1;  ///< -1: kOverlap
  ActionType type = ActionType::kForward;
  int64_t microbatch = -1;         ///< -1: not of one
  std::vector<Action> parts = {};  ///< kOverlap: forward, then backward

  friend bool operator==(const Action&, const Action&) = default;
};

/// `2F0`, `0UNSHARD`, `2RECV_F1`, `(0F3;3B1)OVERLAP_F_B`.
std::string ToString(const Action& action);

/// Calls `fn` for the action, or for the parts of an overlap.
template <class Fn>
void ForEachPart(const Action& action, Fn fn) {
  if (action.type != ActionType::kOverlap) return fn(action);
  for (const Action& part : action.parts)
    fn(part);
}

/// What an action is: its stage, type and microbatch.
using ActionKey = std::tuple<int64_t, ActionType, int64_t>;
inline ActionKey KeyOf(const Action& action) {
  return {action.stage, action.type, action.microbatch};
}

}  // namespace strata
