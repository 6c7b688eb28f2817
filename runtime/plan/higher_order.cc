#include "runtime/plan/higher_order.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace strata {
namespace {

constexpr HigherOrderOp kOps[] = {
    {"higher_order.cond", BodyUse::kCond, 1, 2, 3},
    {"higher_order.invoke_subgraph", BodyUse::kInvoke, 0, 1, 2},
    {"higher_order.map_impl", BodyUse::kMap, 0, 1, 1},
    {"higher_order.scan", BodyUse::kScan, 0, 1, 1},
    {"higher_order.while_loop", BodyUse::kWhileLoop, 0, 2, 2},
    {"higher_order.while_loop_stack_output", BodyUse::kWhileLoopStacked, 0, 2, 2},
    {"higher_order.wrap_with_autocast", BodyUse::kAutocast, 4, 1, 5},
    {"higher_order.wrap_with_set_grad_enabled", BodyUse::kInvoke, 1, 1, 2},
};

}  // namespace

const HigherOrderOp* FindHigherOrderOp(std::string_view op) {
  const auto* const found = std::ranges::find(kOps, op, &HigherOrderOp::op);
  return found == std::end(kOps) ? nullptr : found;
}

std::string WhyNotRun(std::string_view op) {
  if (op.starts_with("higher_order.auto_functionalized")) {
    return fmt::format(
        "{} does not run: name the graph after Inductor's post-grad passes, which calls its "
        "operator",
        op);
  }
  if (op.starts_with("higher_order.triton_kernel_wrapper"))
    return fmt::format("{} does not run: a graph does not hold the code of Triton kernels", op);
  return fmt::format(
      "{} does not run: name a graph that AOTAutograd made, such as aot_joint_graph, if it has "
      "another form there",
      op);
}

}  // namespace strata
