#include "runtime/exec/step/body_call.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <ATen/autocast_mode.h>
#include <ATen/ops/stack.h>

#include "runtime/aten/literals.h"

namespace strata {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

void Append(Tensors& all, const Tensors& more) {
  all.insert(all.end(), more.begin(), more.end());
}

Tensors Joined(const Tensors& first, const Tensors& second) {
  Tensors all = first;
  Append(all, second);
  return all;
}

/// Element `i` of the first dimension of each.
Tensors ElementsAt(const Tensors& xs, int64_t i) {
  Tensors elements;
  for (const Tensor& x : xs)
    elements.push_back(x.defined() ? x.select(0, i) : x);
  return elements;
}

/// The number of elements of the first dimension, which all of `xs` have.
int64_t CountElements(const Tensors& xs) {
  const auto first = std::ranges::find_if(xs, [](const Tensor& x) { return x.defined(); });
  if (first == xs.end() || first->dim() == 0 || first->size(0) == 0)
    throw std::runtime_error("has no element to run its body for");
  for (const Tensor& x : xs) {
    if (x.defined() && (x.dim() == 0 || x.size(0) != first->size(0)))
      throw std::runtime_error("takes tensors of different lengths");
  }
  return first->size(0);
}

/// Results of one kind: rows[i] of each iteration. A result that is None stays None.
Tensors Stacked(const std::vector<Tensors>& rows) {
  Tensors stacked;
  for (size_t i = 0; i < rows[0].size(); ++i) {
    Tensors column;
    for (const Tensors& row : rows)
      column.push_back(row[i]);
    stacked.push_back(column[0].defined() ? at::stack(column) : Tensor());
  }
  return stacked;
}

/// A result that is an operand, or another result, becomes a copy: a plan reuses the memory of
/// values whose lifetime ends.
void CopyShared(Tensors& results, const std::vector<Tensors>& operands) {
  std::vector<const void*> taken;
  for (const Tensors& list : operands)
    for (const Tensor& operand : list)
      if (operand.defined()) taken.push_back(operand.storage().unsafeGetStorageImpl());
  for (Tensor& result : results) {
    if (!result.defined()) continue;
    if (std::ranges::find(taken, result.storage().unsafeGetStorageImpl()) != taken.end())
      result = result.clone();
    taken.push_back(result.storage().unsafeGetStorageImpl());
  }
}

/// What a body returns as a condition.
bool IsTrueTensor(const Tensors& results) {
  if (results.size() != 1 || !results[0].defined() || results[0].numel() != 1)
    throw std::runtime_error("has a condition that is not a truth value");
  return results[0].item().toBool();
}

/// Autocast of the CPU, as it was before.
class KeptAutocast {
 public:
  KeptAutocast()
      : was_enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
        dtype_(at::autocast::get_autocast_dtype(at::kCPU)) {}
  KeptAutocast(const KeptAutocast&) = delete;
  KeptAutocast& operator=(const KeptAutocast&) = delete;
  ~KeptAutocast() {
    at::autocast::set_autocast_enabled(at::kCPU, was_enabled_);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_);
  }

 private:
  bool was_enabled_;
  at::ScalarType dtype_;
};

std::vector<PlanArg> ElementsOf(const PlanArg& arg) {
  const bool is_list = arg.kind == ArgKind::kList || arg.kind == ArgKind::kTuple;
  return is_list ? arg.elements : std::vector<PlanArg>{arg};
}

}  // namespace

Result<BodyCall> BodyCall::Bind(const PlanStep& step, const BodyPrograms& bodies) {
  const HigherOrderOp& op = *FindHigherOrderOp(step.op);
  BodyCall call(op.use);
  for (size_t i = 0; i < op.num_bodies; ++i) {
    const PlanArg& body = step.args[op.first_body + i];
    call.bodies_.push_back(bodies[BodyId{static_cast<int32_t>(body.integer)}].get());
  }
  const bool takes_lists = op.use != BodyUse::kInvoke && op.use != BodyUse::kAutocast;
  if (op.use == BodyUse::kCond) call.condition_ = step.args[0];
  if (op.use == BodyUse::kAutocast) {
    STRATA_TRY(call.autocast_, AutocastOf(step));
  }
  if (!takes_lists) call.operands_.emplace_back();
  for (size_t i = op.first_operand; i < step.args.size(); ++i) {
    if (takes_lists) {
      call.operands_.push_back(ElementsOf(step.args[i]));
    } else {
      call.operands_[0].push_back(step.args[i]);
    }
  }
  constexpr size_t kMostLists = 3;
  call.operands_.resize(std::max(call.operands_.size(), kMostLists));
  return call;
}

Result<std::optional<BodyCall::Autocast>> BodyCall::AutocastOf(const PlanStep& step) {
  const PlanArg &device = step.args[0], &dtype = step.args[1], &enabled = step.args[2];
  if (device.kind != ArgKind::kString || enabled.kind != ArgKind::kBool)
    return Error(ErrorCode::kInvalid, "takes a device, a dtype and whether it is enabled");
  const bool is_enabled = enabled.integer != 0;
  if (device.text != "cpu") {
    if (!is_enabled) return std::optional<Autocast>();
    // Each device has its own list of operators that cast.
    return Error(ErrorCode::kUnsupported,
                 "casts as on '{}', and a plan runs on CPUs: name the graph after "
                 "run_decompositions, which states the casts",
                 device.text);
  }
  Autocast autocast{.is_enabled = is_enabled, .dtype = std::nullopt};
  if (dtype.kind == ArgKind::kDType) autocast.dtype = ToScalarType(dtype.dtype);
  return std::optional(autocast);
}

BodyCall::Tensors BodyCall::RunUnderAutocast(const Tensors& operands) const {
  if (!autocast_) return bodies_[0]->Run(operands);
  const KeptAutocast kept;
  at::autocast::set_autocast_enabled(at::kCPU, autocast_->is_enabled);
  if (autocast_->dtype) at::autocast::set_autocast_dtype(at::kCPU, *autocast_->dtype);
  return bodies_[0]->Run(operands);
}

bool BodyCall::IsTrue(const ValueOf& value_of) const {
  if (condition_.kind != ArgKind::kValue) return condition_.integer != 0;
  const c10::IValue value = value_of(condition_.slot);
  return value.isTensor() ? IsTrueTensor({value.toTensor()}) : value.toScalar().toBool();
}

Tensors BodyCall::WhileLoop(Tensors carried, const Tensors& more) const {
  std::vector<Tensors> iterations;
  const bool stacks = use_ == BodyUse::kWhileLoopStacked;
  const Tensors first = carried;
  while (IsTrueTensor(bodies_[0]->Run(Joined(carried, more)))) {
    carried = bodies_[1]->Run(Joined(carried, more));
    if (stacks) iterations.push_back(carried);
  }
  if (!stacks) return carried;
  if (iterations.empty()) iterations.push_back(first);
  return Stacked(iterations);
}

Tensors BodyCall::Scan(Tensors carried, const Tensors& xs, const Tensors& more) const {
  const auto num_carried = static_cast<std::ptrdiff_t>(carried.size());
  std::vector<Tensors> rows;
  const int64_t count = CountElements(xs);
  for (int64_t i = 0; i < count; ++i) {
    const Tensors results = bodies_[0]->Run(Joined(Joined(carried, ElementsAt(xs, i)), more));
    carried.assign(results.begin(), results.begin() + num_carried);
    rows.emplace_back(results.begin() + num_carried, results.end());
  }
  Append(carried, Stacked(rows));
  return carried;
}

Tensors BodyCall::Run(const ValueOf& value_of) const {
  std::vector<Tensors> lists;
  for (const std::vector<PlanArg>& operands : operands_) {
    Tensors& list = lists.emplace_back();
    for (const PlanArg& operand : operands) {
      const bool is_value = operand.kind == ArgKind::kValue;
      list.push_back(is_value ? value_of(operand.slot).toTensor() : Tensor());
    }
  }
  Tensors results;
  switch (use_) {
    case BodyUse::kInvoke:
      results = bodies_[0]->Run(lists[0]);
      break;
    case BodyUse::kAutocast:
      results = RunUnderAutocast(lists[0]);
      break;
    case BodyUse::kCond:
      results = bodies_[IsTrue(value_of) ? 0 : 1]->Run(lists[0]);
      break;
    case BodyUse::kWhileLoop:
    case BodyUse::kWhileLoopStacked:
      results = WhileLoop(lists[0], lists[1]);
      break;
    case BodyUse::kScan:
      results = Scan(lists[0], lists[1], lists[2]);
      break;
    case BodyUse::kMap:
      results = Scan({}, lists[0], lists[1]);
      break;
  }
  CopyShared(results, lists);
  return results;
}

}  // namespace strata
