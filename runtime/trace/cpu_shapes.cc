#include "runtime/trace/cpu_shapes.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros.h>

namespace strata {
namespace {

using at::Tensor;

constexpr int64_t kMostBytes = int64_t{16} << 30U;

/// Operands of an operator, on the CPU.
class Operands {
 public:
  /// None: too large.
  std::optional<c10::IValue> OnCpu(const c10::IValue& value) {
    if (value.isTensor()) return TensorOnCpu(value.toTensor());
    if (value.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& tensor : value.toTensorVector()) {
        const std::optional<Tensor> on_cpu = TensorOnCpu(tensor);
        if (!on_cpu) return std::nullopt;
        list.push_back(*on_cpu);
      }
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> list;
      for (const std::optional<Tensor>& tensor : value.toOptionalTensorVector()) {
        const std::optional<Tensor> on_cpu = tensor ? TensorOnCpu(*tensor) : Tensor();
        if (!on_cpu) return std::nullopt;
        list.push_back(tensor ? on_cpu : std::nullopt);
      }
      return list;
    }
    if (value.isDevice() && value.toDevice().is_meta()) return c10::IValue(c10::Device("cpu"));
    return value;
  }

  /// None: it shares memory with an operand and is another tensor.
  std::optional<Tensor> ToMeta(const Tensor& result) const {
    if (!result.defined()) return result;
    for (const auto& [meta, on_cpu] : tensors_) {
      if (on_cpu.is_same(result)) return meta;
      const bool shares = result.has_storage() && on_cpu.storage().is_alias_of(result.storage());
      if (shares && result.numel() > 0) return std::nullopt;
    }
    return at::empty_strided(result.sizes(), result.strides(), result.options().device(at::kMeta));
  }

 private:
  std::optional<Tensor> TensorOnCpu(const Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_meta()) return tensor;
    for (const auto& [meta, on_cpu] : tensors_)
      if (meta.is_same(tensor)) return on_cpu;
    int64_t reach = tensor.numel() == 0 ? 0 : 1;
    for (int64_t dim = 0; dim < tensor.dim() && reach > 0; ++dim)
      reach += (tensor.size(dim) - 1) * tensor.stride(dim);
    bytes_ += reach * static_cast<int64_t>(tensor.element_size());
    if (bytes_ > kMostBytes) return std::nullopt;
    const auto options = at::TensorOptions(tensor.scalar_type());
    tensors_.emplace_back(tensor,
                          at::zeros({reach}, options).as_strided(tensor.sizes(), tensor.strides()));
    return tensors_.back().second;
  }

  std::vector<std::pair<Tensor, Tensor>> tensors_;  // Meta, CPU
  int64_t bytes_ = 0;
};

std::optional<c10::IValue> ResultToMeta(const Operands& operands, const c10::IValue& result) {
  if (result.isTensor()) {
    const std::optional<Tensor> meta = operands.ToMeta(result.toTensor());
    return meta ? std::optional(c10::IValue(*meta)) : std::nullopt;
  }
  if (!result.isTensorList()) return result;
  c10::List<Tensor> list;
  for (const Tensor& element : result.toTensorVector()) {
    const std::optional<Tensor> meta = operands.ToMeta(element);
    if (!meta) return std::nullopt;
    list.push_back(*meta);
  }
  return list;
}

}  // namespace

std::optional<std::vector<c10::IValue>> ResultsByCpu(const c10::OperatorHandle& op,
                                                     std::span<const c10::IValue> args) {
  if (op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape))
    return std::nullopt;
  const at::AutoDispatchBelowADInplaceOrView without_autograd;
  Operands operands;
  torch::jit::Stack stack;
  for (const c10::IValue& arg : args) {
    std::optional<c10::IValue> on_cpu = operands.OnCpu(arg);
    if (!on_cpu) return std::nullopt;
    stack.push_back(*std::move(on_cpu));
  }
  try {
    op.callBoxed(&stack);
  } catch (const std::exception&) {
    return std::nullopt;  // the error of the Meta tensors is the one that counts
  }
  std::vector<c10::IValue> results;
  for (const c10::IValue& result : stack) {
    const std::optional<c10::IValue> meta = ResultToMeta(operands, result);
    if (!meta) return std::nullopt;
    results.push_back(*meta);
  }
  return results;
}

}  // namespace strata
