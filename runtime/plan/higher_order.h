#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

// Higher-order operators that run bodies, as PyTorch's tracers write them.
// Source: torch/_higher_order_ops.

/// How an operator uses its bodies.
enum class BodyUse : uint8_t {
  kInvoke,     ///< (…, body, …, operand…): what the body returns
  kAutocast,   ///< (device, dtype, enabled, caches, body, operand…): the same, under torch.autocast
  kCond,       ///< (condition, body if true, body if false, operands): what one of them returns
  kWhileLoop,  ///< (condition, body, carried, more operands): what is carried at the end
  kWhileLoopStacked,  ///< the same; results are what each iteration carried, stacked
  kScan,  ///< (body, carried, xs, more operands): the body takes and gives what is carried, takes
          ///< an element of each of xs, and gives elements of further results, which are stacked
  kMap,   ///< (body, xs, more operands): the body takes an element of each of xs; stacked
};

struct HigherOrderOp {
  std::string_view op;
  BodyUse use;
  size_t first_body, num_bodies;  ///< arguments
  size_t first_operand;           ///< of the bodies: each argument, or lists
};

/// Null: another operator.
const HigherOrderOp* FindHigherOrderOp(std::string_view op);

/// Why no plan runs the higher-order operator `op`, which has no HigherOrderOp, and what to do.
std::string WhyNotRun(std::string_view op);

}  // namespace strata
