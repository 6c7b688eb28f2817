#include "passes/flex/flex_kernel.h"

namespace strata {

int64_t FlexKernel::units() const {
  switch (kind) {
    case Kind::kForward:
      return batch * heads * query_blocks();
    case Kind::kBackward:
      return batch * kv_heads;
    case Kind::kBlockMask:
      return mask_batch * mask_heads;
  }
  return 0;
}

int64_t FlexKernel::unit_work() const {
  switch (kind) {
    case Kind::kForward:
      return query_block * keys * (width + value_width);
    case Kind::kBackward:
      return heads / kv_heads * queries * keys * (3 * width + 2 * value_width);
    case Kind::kBlockMask:
      return queries * keys;
  }
  return 0;
}

}  // namespace strata
