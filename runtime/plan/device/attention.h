#pragma once
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "ir/type.h"
#include "runtime/plan/device/device.h"

namespace strata {

/// LibTorch's kernels of attention.
enum class AttentionKernel : uint8_t {
  kCpu,        ///< flash attention on the CPU
  kFlash,      ///< FlashAttention 2 (arXiv 2307.08691): 16 bits
  kEfficient,  ///< memory-efficient attention (arXiv 2112.05682): any float type, masks
  kCudnn,      ///< cuDNN's: the fastest on Hopper and data-centre Blackwell
};
std::string_view ToString(AttentionKernel kernel);  ///< "flash", …

struct AttentionShape {
  DType dtype = DType::kF32;
  int64_t head_dim = 0;     ///< the widest of queries, keys and values
  bool has_mask = false;    ///< added to the scores; without one: causal
  bool is_grouped = false;  ///< several heads of queries share keys and values
  bool is_single = false;   ///< one key a row
};

/// The fastest kernel that computes it on a device. Errors (kUnsupported): none does.
///
///   kernel     capability         dtype       head_dim   mask  grouped  single  deterministic
///   cuDNN      9.0, 10.0, 10.3    bf16, f16   ≤ 128      no    no       no      no
///   flash      ≥ 8.0              bf16, f16   ≤ 256      no    yes      yes     yes
///   efficient  ≥ 7.5              and f32     any        yes   no       yes     yes
///
/// cuDNN from 9.15.1 on. Flash has no gradient of heads of 193 to 224 elements on the GPUs with
/// less shared memory, 8.6 to 8.9 and 12.x; efficient has bf16 from 8.0 on. Where a kernel takes no
/// groups, keys and values are repeated.
/// Source: ATen/native/transformers/cuda/sdp_utils.cpp.
Result<AttentionKernel> ChooseAttention(const DeviceTraits& device, const AttentionShape& shape);

/// Heads are padded with zeros to a multiple of this many elements, and begin at such: kernels of
/// GPUs load 16 bytes at a time, which is as many elements in 16 bits.
inline constexpr int64_t kHeadUnit = 8;

}  // namespace strata
