#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "base/id.h"
#include "ir/type.h"
#include "passes/flex/flex_program.h"

namespace strata {

using FlexKernelId = Id<struct FlexKernelTag>;

/// What one step of flex attention computes, with all sizes: runtime/codegen makes code of it.
///
/// Arguments are, in order: query, key, value; backward: out, logsumexp and the gradient of out;
/// not for a block mask: its kNumBlockTensors; the score_mod's buffers, the mask_mod's; results.
/// Causal attention of ATen, where `is_causal`, has no block mask.
struct FlexKernel {
  enum class Kind : uint8_t { kForward, kBackward, kBlockMask };

  struct Buffer {
    DType dtype = DType::kUnknown;
    std::vector<int64_t> strides;  ///< in elements
  };

  Kind kind = Kind::kForward;
  FlexProgram score_mod, mask_mod;  ///< score_mod: not of a block mask
  FlexProgram joint_graph;          ///< backward
  DType dtype = DType::kUnknown;    ///< of query, key, value and out
  int64_t batch = 1, heads = 1, kv_heads = 1;
  int64_t queries = 0, keys = 0;           ///< of a row
  int64_t width = 0, value_width = 0;      ///< of a head
  int64_t query_block = 0, key_block = 0;  ///< sizes of a block
  int64_t mask_batch = 1, mask_heads = 1;  ///< of the block mask; 1: for all
  double scale = 1.0;
  /// Instead of a block mask: a query attends to itself and what is before it, in blocks of one
  /// size. The logsumexp is ATen's: natural, with these strides.
  bool is_causal = false;
  std::array<int64_t, 3> logsumexp_strides = {};
  /// Of query, key, value and out `[batch, heads, row, width]`; backward: also of the gradient of
  /// out, and of the gradients of query, key and value. The last stride is 1.
  std::array<std::array<int64_t, 4>, 8> strides = {};
  std::vector<Buffer> score_buffers, mask_buffers;

  int64_t query_blocks() const { return (queries + query_block - 1) / query_block; }
  int64_t key_blocks() const { return (keys + key_block - 1) / key_block; }
  /// Parts that are independent of each other, and the work of each in multiplications.
  int64_t units() const;
  int64_t unit_work() const;
};

}  // namespace strata
