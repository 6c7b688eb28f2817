#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/plan/plan.h"

namespace strata {

/// What one step of a plan computes, by a loop of runtime/loops.
class OwnLoop {
 public:
  virtual ~OwnLoop() = default;
  /// Addresses of the operands' first elements, in their order, then of the results'.
  virtual void Run(void* const* addresses) = 0;
  /// A result may lie where an operand lies: each element is read before it is written.
  virtual bool is_elementwise() const { return false; }
  /// By construction: nothing has to be tried.
  virtual bool has_atens_bits() const { return false; }
};

/// A loop for a step that has ATen's bits on this machine; null if there is none. Where it is not
/// plain that it has, both are run on drawn operands of these layouts, once in a process. Only for
/// steps of few elements, which ATen computes in one thread: there its calls cost more than its
/// loops.
///
/// `operands`: tensors in the order of PlanStep::ForEachOperand, whose layouts alone are looked at;
/// `results`: where results are written, all of them.
std::unique_ptr<OwnLoop> OwnLoopFor(const PlanStep& step, const std::vector<at::Tensor>& operands,
                                    const std::vector<PlanLayout>& results);

}  // namespace strata
