#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace strata {

/// How flex attention changes and masks scores (arXiv 2412.05496).
struct FlexMask {
  std::string score_mod, mask_mod;                      ///< bodies (passes/flex/flex_body.h)
  std::vector<at::Tensor> score_buffers, mask_buffers;  ///< what they read
  int64_t block_size = 128;                             ///< queries and keys of a block
  /// Which blocks have scores: kNumBlockTensors of passes/flex/flex_node.h, made by MakeBlockMask.
  std::vector<at::Tensor> blocks;
};

/// Registers the operators `strata.flex_attention`, `strata.flex_attention_backward` and
/// `strata.create_block_mask` with LibTorch, once per process: shapes, autograd, and kernels that
/// compute all scores by ATen's operators. Executors have faster ones
/// (runtime/codegen/flex_source.h and cuda_flex_source.h).
void RegisterFlexAttention();

/// The blocks of `mask_mod` for `batch` rows of `seq` queries and keys and `heads` heads; where the
/// body reads neither row nor head, one mask serves all. `[batch or 1, heads or 1, …]`, on
/// `device`.
std::vector<at::Tensor> MakeBlockMask(const FlexMask& mask, int64_t batch, int64_t heads,
                                      int64_t seq, c10::Device device);

/// softmax(score_mod(scale · q k^T)) v over the keys that mask_mod allows; rows without a key are
/// 0. q `[batch, heads, seq, head_dim]`; k, v may have fewer heads, as in Attention of
/// runtime/models/layers.h. The result lies in memory as q does.
at::Tensor FlexAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const FlexMask& mask, double scale);

}  // namespace strata
