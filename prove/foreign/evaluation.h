#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "prove/evaluation/rank_evaluator.h"
#include "prove/foreign/program.h"
#include "prove/values/call.h"

namespace strata::prove {

/// Which of the graphs of a compilation.
enum class Part : uint8_t { kForward, kBackward };

inline const Graph& GraphOf(const CompiledProgram& program, Part part) {
  return part == Part::kForward ? *program.forward : *program.backward;
}

/// By key: see KeyOf. Of an input that the graphs write to, `w after the graphs` is an output.
using KeyedValues = std::map<std::string, Value, std::less<>>;
using KeyedRankValues = std::map<std::string, std::vector<Value>, std::less<>>;

/// What a compilation computes on one device.
struct SingleValues {
  KeyedValues inputs;   ///< of forward, and the gradients that backward begins with; random
  KeyedValues outputs;  ///< of both
  std::set<std::string> opaque;
  int64_t evaluations = 0;
};

/// Called after each node with its results; may overwrite their elements.
using SingleObserver = std::function<void(Part part, NodeId node, std::span<Value> results)>;
using RanksObserver = std::function<void(Part part, NodeId node, std::span<Values> results)>;

/// Evaluates forward and then backward, which reads what forward saved. Constants are the same for
/// equal names, and those without dimensions 0: logs do not have their values. Errors: those of
/// MakeInputs and Evaluator.
Result<SingleValues> EvaluateSingle(const CompiledProgram& program, uint64_t seed,
                                    const SingleObserver& observe);

/// What a compilation computes on all ranks.
struct RanksValues {
  KeyedRankValues outputs;
  std::optional<Error> error;  ///< the evaluation ended with it, at `failed` of `part`
  Part part = Part::kForward;
  NodeId failed;
  std::set<std::string> opaque;
  int64_t evaluations = 0;
};

/// `keys`: names of inputs, which all ranks share. `inputs`: of each rank; operators may write to
/// them. Errors: an input that is not in `inputs`.
Result<RanksValues> EvaluateRanks(std::span<const CompiledProgram> ranks,
                                  const std::vector<InputName>& names,
                                  const KeyedRankValues& inputs, const GroupLookup& groups,
                                  uint64_t seed, const RanksObserver& observe);

/// The key of what an input holds after the graphs wrote to it.
std::string WrittenKey(std::string_view input);

/// Names of constants without dimensions in the graphs of a program.
std::set<std::string> ScalarConstants(const CompiledProgram& program);
/// Names of other constants.
std::set<std::string> TensorConstants(const CompiledProgram& program);

}  // namespace strata::prove
