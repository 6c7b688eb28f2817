#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace strata {

/// What a body of flex attention computes, and from what.
enum class FlexRole : uint8_t {
  kScore,  ///< (score, b, h, q_idx, kv_idx, buffers…) -> score
  kMask,   ///< (b, h, q_idx, kv_idx, buffers…) -> whether the query attends to the key
  kJoint,  ///< (score, b, h, q_idx, kv_idx, gradient, buffers…) -> (gradient of the score, None…)
};
std::string_view ToString(FlexRole role);  ///< "score_mod", …
/// Inputs before the buffers.
size_t NumScalars(FlexRole role);

/// A body of flex attention as a list of scalar operations, for one score of one head: what code
/// generators and derivatives read. Source of the roles: torch/_higher_order_ops/flex_attention.py.
struct FlexProgram {
  enum class Kind : uint8_t { kFloat, kInt, kBool };

  struct Operand {
    int32_t op = -1;      ///< an earlier op; -1: the literal `number`
    double number = 0.0;  ///< of a literal
    Kind kind = Kind::kFloat;
  };

  struct Op {
    std::string code;  ///< "input", "load", "constant", "add", …: kFlexOperators in the source
    Kind kind = Kind::kFloat;
    std::vector<Operand> operands;
    int32_t index = -1;  ///< "input": which scalar; "load": which buffer
    NodeId node;         ///< that it stands for
  };

  FlexRole role = FlexRole::kScore;
  std::vector<Op> ops;  ///< inputs first
  size_t num_buffers = 0;
  Operand result;

  /// Whether the result depends on this scalar input.
  bool Reads(size_t input) const;
};

/// Errors (kUnsupported, kInvalid), with the body's name and the node: an operator that bodies
/// cannot have, a wrong number of inputs or a result of another kind than the role's.
Result<FlexProgram> MakeFlexProgram(const Graph& body, FlexRole role);

}  // namespace strata
