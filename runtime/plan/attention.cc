#include "runtime/plan/attention.h"

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
  if (is_half && !shape.has_mask && !shape.is_grouped && has_fast_cudnn && device.cudnn >= 91500 &&
      shape.head_dim <= 128 && !device.deterministic) {
    return AttentionKernel::kCudnn;
  }
  if (is_half && !shape.has_mask && capability >= 8.0 && shape.head_dim <= 256) {
    return AttentionKernel::kFlash;
  }
  if ((is_half || shape.dtype == DType::kF32) && capability >= 7.5) {
    return AttentionKernel::kEfficient;
  }
  return Error(ErrorCode::kUnsupported,
               "no attention kernel for {} on a GPU of compute capability {:.1f}",
               ShortName(shape.dtype), capability);
}

}  // namespace strata
