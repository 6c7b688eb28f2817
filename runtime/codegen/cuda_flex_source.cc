#include "runtime/codegen/cuda_flex_source.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>

#include "passes/flex/flex_node.h"
#include "runtime/codegen/cuda_flex_preamble.h"
#include "runtime/codegen/flex_shape.h"

namespace strata {
namespace {

// As in the CUDA (cuda_flex_preamble.cc).
constexpr int32_t kFlexThreads = 128;
constexpr int64_t kMaxFlexBlocks = 65536;

int64_t RoundedUp(int64_t number, int64_t unit) {
  return (number + unit - 1) / unit;
}

/// Rows that a block of threads computes at once.
int64_t RowsOf(const FlexKernel& kernel) {
  int64_t lanes = 1;
  while (lanes < 32 && 16 * lanes < std::max(kernel.width, kernel.value_width))
    lanes *= 2;
  return kFlexThreads / lanes;
}

CudaLaunch LaunchOfUnits(int64_t units) {
  return {.blocks = std::clamp<int64_t>(units, 1, kMaxFlexBlocks), .threads = kFlexThreads};
}

/// The algorithms that a kernel launches, one after the other.
std::vector<std::string_view> AlgorithmsOf(FlexKernel::Kind kind) {
  switch (kind) {
    case FlexKernel::Kind::kForward:
      return {"strata_flex_forward<{}>"};
    case FlexKernel::Kind::kBackward:
      return {"strata_flex_query_gradients<{}>", "strata_flex_key_gradients<{}>"};
    case FlexKernel::Kind::kBlockMask:
      return {"strata_flex_blocks<{}, true>", "strata_flex_blocks<{}, false>"};
  }
  return {};
}

std::string Functions(const FlexKernel& kernel, std::string_view shape, size_t index) {
  std::string parameters, names;
  for (size_t i = 0; i < NumArguments(kernel); ++i) {
    parameters += fmt::format("{}void* a{}", i == 0 ? "" : ", ", i);
    names += fmt::format("{}a{}", i == 0 ? "" : ", ", i);
  }
  std::string text;
  const std::vector<std::string_view> algorithms = AlgorithmsOf(kernel.kind);
  for (size_t part = 0; part < algorithms.size(); ++part) {
    text += fmt::format(
        "extern \"C\" __global__ void __launch_bounds__({}) strata_flex_{}_{}({}) {{\n"
        "  void* const arguments[] = {{{}}};\n"
        "  {}(arguments);\n"
        "}}\n",
        kFlexThreads, index, part, parameters, names,
        fmt::format(fmt::runtime(algorithms[part]), shape));
  }
  return text;
}

}  // namespace

size_t NumArguments(const FlexKernel& kernel) {
  const size_t num_buffers = kernel.score_buffers.size() + kernel.mask_buffers.size();
  switch (kernel.kind) {
    case FlexKernel::Kind::kForward:
      return 3 + kNumBlockTensors + num_buffers + 2;
    case FlexKernel::Kind::kBackward:
      return 6 + kNumBlockTensors + num_buffers + 3;
    case FlexKernel::Kind::kBlockMask:
      return num_buffers + kNumBlockTensors;
  }
  return 0;
}

std::vector<CudaLaunch> LaunchesOf(const FlexKernel& kernel) {
  const FlexKernel& k = kernel;
  const int64_t rows = RowsOf(k);
  const int64_t query_tiles = k.query_blocks() * RoundedUp(k.query_block, rows);
  const int64_t key_tiles = k.key_blocks() * RoundedUp(k.key_block, rows);
  const int64_t masks = k.mask_batch * k.mask_heads;
  switch (k.kind) {
    case FlexKernel::Kind::kForward:
      return {LaunchOfUnits(k.batch * k.heads * query_tiles)};
    case FlexKernel::Kind::kBackward:
      return {LaunchOfUnits(k.batch * k.heads * query_tiles),
              LaunchOfUnits(k.batch * k.kv_heads * key_tiles)};
    case FlexKernel::Kind::kBlockMask:
      return {LaunchOfUnits(masks * k.query_blocks()), LaunchOfUnits(masks * k.key_blocks())};
  }
  return {};
}

std::string CudaFlexSource(std::span<const FlexKernel> kernels) {
  std::string source = fmt::format("{}{}{}", kCudaPreamble, kCudaFlexPreamble, kFlexArithmetic);
  std::map<std::string, std::string> shapes;  // names by text: layers of one shape share code
  for (size_t i = 0; i < kernels.size(); ++i) {
    STRATA_CHECK(!kernels[i].is_causal, "a kernel of CPUs");
    const std::string name = fmt::format("strata_shape_{}", i);
    const auto [shape, is_new] = shapes.emplace(FlexShape(kernels[i], "strata_shape"), name);
    if (is_new) source += FlexShape(kernels[i], name);
    source += Functions(kernels[i], shape->second, i);
  }
  return source;
}

}  // namespace strata
