#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/ScalarType.h>

#include "base/result.h"
#include "runtime/plan/higher_order.h"
#include "runtime/plan/plan.h"

namespace strata {

/// A body of a plan, bound.
class BodyProgram {
 public:
  BodyProgram() = default;
  BodyProgram(const BodyProgram&) = delete;
  BodyProgram& operator=(const BodyProgram&) = delete;
  virtual ~BodyProgram() = default;

  /// `operands` are those of all placeholders, undefined for numbers. Results are undefined for
  /// None. Throws what its operators throw, as std::runtime_error.
  virtual std::vector<at::Tensor> Run(std::span<const at::Tensor> operands) = 0;
};
using BodyPrograms = IdVector<BodyId, std::unique_ptr<BodyProgram>>;

/// A step that runs bodies: a higher-order operator, bound. It computes what PyTorch's eager
/// implementation computes, in the same order.
class BodyCall {
 public:
  using ValueOf = std::function<c10::IValue(SlotId)>;

  /// REQUIRES: `step.runs_bodies`; the bodies outlive the call. Errors: arguments that do not fit.
  static Result<BodyCall> Bind(const PlanStep& step, const BodyPrograms& bodies);

  /// The results, each in memory of its own.
  std::vector<at::Tensor> Run(const ValueOf& value_of) const;

 private:
  using Tensors = std::vector<at::Tensor>;

  /// How operators of a body cast their operands.
  struct Autocast {
    bool is_enabled = false;
    std::optional<c10::ScalarType> dtype;  // none: as it is set
  };

  explicit BodyCall(BodyUse use) : use_(use) {}
  static Result<std::optional<Autocast>> AutocastOf(const PlanStep& step);
  Tensors RunUnderAutocast(const Tensors& operands) const;
  bool IsTrue(const ValueOf& value_of) const;
  Tensors WhileLoop(Tensors carried, const Tensors& more) const;
  Tensors Scan(Tensors carried, const Tensors& xs, const Tensors& more) const;

  BodyUse use_;
  std::vector<BodyProgram*> bodies_;
  PlanArg condition_;                           // of kCond
  std::optional<Autocast> autocast_;            // of kAutocast; none: of another device, off
  std::vector<std::vector<PlanArg>> operands_;  // as the operator groups them
};

}  // namespace strata
