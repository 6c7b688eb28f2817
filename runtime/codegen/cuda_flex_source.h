#pragma once
#include <span>
#include <string>
#include <vector>

#include "passes/flex/flex_kernel.h"
#include "runtime/codegen/cuda_source.h"

namespace strata {

/// The launches that together are a kernel of flex attention, in their order: `strata_flex_<i>_<j>`
/// of CudaFlexSource. Backward has one for the gradient of queries and one for those of keys and
/// values, a block mask one for lists by rows and one for lists by columns.
std::vector<CudaLaunch> LaunchesOf(const FlexKernel& kernel);

/// Arguments of a kernel, results included.
size_t NumArguments(const FlexKernel& kernel);

/// A CUDA file for kernels, which NVRTC compiles as it is. A function takes one pointer per
/// argument of FlexKernel, all of them.
///
/// Threads that are a power of two share a row of queries (forward, and the gradient of queries) or
/// of keys (their gradient and that of values): each has a part of its numbers. Rows of the other
/// side pass through shared memory. Blocks that the block mask does not list cost nothing; in full
/// ones the mask is not evaluated. Scores and sums are fp32, and each sum has one order: results
/// are the same in every run. Sources: arXiv 2205.14135 (online softmax), 2412.05496 (block masks).
///
/// REQUIRES: no kernel is_causal: that is a kernel of CPUs.
std::string CudaFlexSource(std::span<const FlexKernel> kernels);

}  // namespace strata
