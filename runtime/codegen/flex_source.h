#pragma once
#include <string>
#include <string_view>

#include "passes/flex/flex_kernel.h"

namespace strata {

/// What files with kernels of flex attention have after kCppPreamble: the algorithms, as templates
/// over the sizes and bodies of a kernel.
///
/// Forward, per head and block of queries: an online softmax over the blocks of keys that the block
/// mask lists (arXiv 2205.14135, 2412.05496). Backward, per head of keys: for each block of keys
/// the listed blocks of queries, whose weights are computed again from the logsumexp. Blocks that
/// are not listed cost nothing; in full ones the mask is not evaluated. Scores are fp32, also for
/// bf16 operands. Sums have one order, whatever the number of threads.
extern const std::string_view kFlexPreamble;

/// The function of a kernel, with the signature of CppFunction; `open` is not read. Same kernel,
/// same text.
std::string FlexFunction(const FlexKernel& kernel, std::string_view name);

}  // namespace strata
