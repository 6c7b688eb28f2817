#pragma once
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include "runtime/exec/static/bind_context.h"
#include "runtime/exec/step/step_binder.h"

namespace strata {

/// An operator with its arguments: those of fixed tensors filled in at bind time, the others in
/// every run.
class OperatorStack {
 public:
  /// An operator without arguments yet.
  explicit OperatorStack(const c10::OperatorHandle& op) : op_(op) {}
  /// An operator on these arguments. `is_plain`: all tensors are IsPlain.
  OperatorStack(const c10::OperatorHandle& op, torch::jit::Stack stack, bool is_plain)
      : op_(op), stack_(std::move(stack)), is_plain_(is_plain) {}

  /// Fills the arguments of `step`. Errors: arguments that do not fit the schema.
  static Result<OperatorStack> Bind(const PlanStep& step, const c10::OperatorHandle& op,
                                    BindContext& context);

  /// Appends an argument: the `out` of an out-variant.
  void Append(const at::Tensor& tensor) { stack_.emplace_back(tensor); }
  /// Calls another operator with the same arguments.
  void SetOperator(const c10::OperatorHandle& op) { op_ = op; }

  /// Calls the operator; its results are then on `state.stack`.
  void Call(StaticState& state) const;
  /// Calls the operator at bind time, on fixed arguments. Errors: what it throws.
  Result<torch::jit::Stack> CallNow() const;

 private:
  void Fill(const BoundStep& bound, BindContext& context);

  c10::OperatorHandle op_;
  torch::jit::Stack stack_;
  bool is_plain_ = false;  // dispatch needs no look at the tensors
  std::vector<TensorSlot> dynamic_tensors_;
  std::vector<ListSlots> dynamic_lists_;
  std::vector<NumberSlots> dynamic_numbers_;
};

}  // namespace strata
