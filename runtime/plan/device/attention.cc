#include "runtime/plan/device/attention.h"

namespace strata {

std::string_view ToString(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kCpu:
      return "cpu";
    case AttentionKernel::kFlash:
      return "flash";
    case AttentionKernel::kEfficient:
      return "efficient";
    case AttentionKernel::kCudnn:
      return "cudnn";
  }
  return "";
}

Result<AttentionKernel> ChooseAttention(const DeviceTraits& device, const AttentionShape& shape) {
  if (!device.is_gpu) return AttentionKernel::kCpu;
  const double capability = device.capability;
  const bool is_half = shape.dtype == DType::kBF16 || shape.dtype == DType::kF16;
  const bool has_fast_cudnn = capability == 9.0 || capability == 10.0 || capability == 10.3;
  if (is_half && !shape.has_mask && !shape.is_grouped && !shape.is_single && has_fast_cudnn &&
      device.cudnn >= 91501 && shape.head_dim <= 128 && !device.deterministic) {
    return AttentionKernel::kCudnn;
  }
  const bool has_less_memory = (capability > 8.5 && capability < 8.95) || capability >= 12.0;
  const bool has_no_gradient = has_less_memory && shape.head_dim > 192 && shape.head_dim <= 224;
  if (is_half && !shape.has_mask && capability >= 8.0 && shape.head_dim <= 256 &&
      !has_no_gradient) {
    return AttentionKernel::kFlash;
  }
  const bool is_known = shape.dtype == DType::kF32 || shape.dtype == DType::kF16 ||
                        (shape.dtype == DType::kBF16 && capability >= 8.0);
  if (is_known && capability >= 7.5) return AttentionKernel::kEfficient;
  return Error(ErrorCode::kUnsupported,
               "no attention kernel for {} on a GPU of compute capability {:.1f}",
               ShortName(shape.dtype), capability);
}

}  // namespace strata
