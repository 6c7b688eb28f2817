#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include "passes/placement/rules/rule_builder.h"

namespace strata {
namespace {

/// A new factor for dimension `dim` of the tensors that have it.
class SharedDim {
 public:
  SharedDim(RuleBuilder& b, DimId size) : b_(b), factor_(b.NewFactor(size)) {}

  SharedDim& Operand(std::optional<size_t> operand, size_t dim) {
    if (operand && dim < b_.operand_sizes(*operand).size()) b_.SetOperand(*operand, dim, factor_);
    return *this;
  }
  SharedDim& Result(size_t result, size_t dim) {
    if (result < b_.num_results() && dim < b_.result_sizes(result).size())
      b_.SetResult(result, dim, factor_);
    return *this;
  }
  void Sum() { b_.MakeReduce(factor_, "sum"); }

 private:
  RuleBuilder& b_;
  int factor_;
};

bool IsTransposed(const RuleBuilder& b, size_t position) {
  return b.FlagArg(position, "transposed", false);
}

/// x `[n, c, ..]`, weight `[o, c/groups, ..]`, bias `[o]` → `[n, o, ..]`; the weight of a
/// transposed one is `[c, o/groups, ..]`. Samples are independent; so are output channels, and
/// input channels are summed, where there is one group. Places are whole: windows overlap.
Status Convolution(RuleBuilder& b) {
  b.MakeAllWhole();
  const bool has_samples = b.operand_sizes(0).size() == b.operand_sizes(1).size();
  if (!has_samples) return Ok();
  SharedDim(b, b.operand_sizes(0)[0]).Operand(0, 0).Result(0, 0);
  if (b.IntArg(8, "groups").value_or(1) != 1) return Ok();
  const size_t of_outputs = IsTransposed(b, 6) ? 1 : 0;
  const std::optional<size_t> bias = b.OperandOf(2);
  SharedDim(b, b.result_sizes(0)[1]).Operand(1, of_outputs).Operand(bias, 0).Result(0, 1);
  // A bias would be added by each rank.
  if (!bias) SharedDim(b, b.operand_sizes(0)[1]).Operand(0, 1).Operand(1, 1 - of_outputs).Sum();
  b.rule().linear = bias ? std::vector<std::vector<int>>() : std::vector<std::vector<int>>{{0}};
  return Ok();
}

/// (gradient `[n, o, ..]`, x `[n, c, ..]`, weight) → (of x, of weight, of bias `[o]`)
Status ConvolutionBackward(RuleBuilder& b) {
  b.MakeAllWhole();
  const bool has_samples = b.operand_sizes(1).size() == b.operand_sizes(2).size();
  if (has_samples)
    SharedDim(b, b.operand_sizes(0)[0]).Operand(0, 0).Operand(1, 0).Result(0, 0).Sum();
  b.rule().linear = {{0}};
  return Ok();
}

/// Each channel on its own. Operands and results of as many elements as channels are of channels.
void ShareChannels(RuleBuilder& b) {
  const size_t rank = b.operand_sizes(0).size();
  const DimId channels = b.operand_sizes(0)[1];
  SharedDim shared(b, channels);
  const auto dim_of = [&](std::span<const DimId> sizes) -> std::optional<size_t> {
    if (sizes.size() == rank) return 1;
    const bool is_vector = sizes.size() == 1 && b.module().dims().ProvablyEqual(sizes[0], channels);
    return is_vector ? std::optional<size_t>(0) : std::nullopt;
  };
  for (size_t operand = 0; operand < b.num_operands(); ++operand)
    if (const auto dim = dim_of(b.operand_sizes(operand))) shared.Operand(operand, *dim);
  for (size_t result = 0; result < b.num_results(); ++result)
    if (const auto dim = dim_of(b.result_sizes(result))) shared.Result(result, *dim);
}

/// (x `[n, c, ..]`, weight, bias, running statistics) → (like x, statistics of the batch, new
/// running statistics), and (gradient, x, weight, statistics) → (of x, of weight, of bias): in
/// training over samples and places.
Status BatchNorm(RuleBuilder& b) {
  b.MakeAllWhole();
  if (b.operand_sizes(0).size() < 2) return Ok();
  ShareChannels(b);
  return Ok();
}

/// Writes the running statistics, though no schema says so.
Status BatchNormInPlace(RuleBuilder& b) {
  STRATA_RETURN_IF_ERROR(BatchNorm(b));
  for (const size_t position : {size_t{3}, size_t{4}})
    if (const auto operand = b.OperandOf(position))
      b.rule().written.push_back(static_cast<int>(*operand));
  return Ok();
}

/// (x `[n, c, ..]`, weight, bias, n, c, places, groups) → (like x, mean `[n, groups]`, 1/deviation)
Status GroupNorm(RuleBuilder& b) {
  b.MakeAllWhole();
  SharedDim samples(b, b.operand_sizes(0)[0]);
  samples.Operand(0, 0).Result(0, 0).Result(1, 0).Result(2, 0);
  b.rule().size_args = {{3, 0}};
  return Ok();
}

/// (gradient, x, mean, 1/deviation, weight, n, c, places, groups) → (of x, of weight, of bias)
Status GroupNormBackward(RuleBuilder& b) {
  b.MakeAllWhole();
  if (b.result_sizes(0).empty()) return Ok();  // the sizes to make local are those of result 0
  SharedDim samples(b, b.operand_sizes(0)[0]);
  for (size_t operand = 0; operand < 4; ++operand)
    samples.Operand(operand, 0);
  samples.Result(0, 0).Sum();
  b.rule().size_args = {{5, 0}};
  return Ok();
}

/// How many of the last dimensions "avg_pool2d" looks at together.
size_t NumPlaces(std::string_view base) {
  for (const std::string_view digit : {"1d", "2d", "3d"})
    if (base.find(digit) != std::string_view::npos) return static_cast<size_t>(digit[0] - '0');
  return 2;
}

/// Each channel of each sample on its own; what is pooled, padded or resized is whole.
Status Channels(RuleBuilder& b) {
  b.MakeAllWhole();
  const size_t rank = b.result_sizes(0).size(), places = NumPlaces(b.base());
  for (size_t dim = 0; dim + places < rank; ++dim) {
    SharedDim shared(b, b.result_sizes(0)[dim]);
    for (size_t operand = 0; operand < b.num_operands(); ++operand)
      if (b.operand_sizes(operand).size() == rank) shared.Operand(operand, dim);
    for (size_t result = 0; result < b.num_results(); ++result)
      shared.Result(result, dim);
  }
  const bool has_sizes = b.base().starts_with("upsample") && b.base().ends_with("_backward");
  if (has_sizes) b.rule().size_lists = {2};
  return Ok();
}

/// Each sample on its own, where all tensors have them.
Status Samples(RuleBuilder& b) {
  b.MakeAllWhole();
  const bool is_unfolded = b.base() == "col2im";
  if (b.operand_sizes(0).size() != (is_unfolded ? 3 : 4)) return Ok();
  SharedDim samples(b, b.operand_sizes(0)[0]);
  for (size_t operand = 0; operand < b.num_operands(); ++operand)
    samples.Operand(operand, 0);
  for (size_t result = 0; result < b.num_results(); ++result)
    samples.Result(result, 0);
  return Ok();
}

constexpr RuleEntry kImageRules[] = {
    {"_adaptive_avg_pool2d", Channels},
    {"_adaptive_avg_pool2d_backward", Channels},
    {"_adaptive_avg_pool3d", Channels},
    {"_adaptive_avg_pool3d_backward", Channels},
    {"_native_batch_norm_legit", BatchNormInPlace},
    {"_native_batch_norm_legit_functional", BatchNorm},
    {"_native_batch_norm_legit_no_training", BatchNorm},
    {"adaptive_max_pool2d", Channels},
    {"adaptive_max_pool2d_backward", Channels},
    {"avg_pool2d", Channels},
    {"avg_pool2d_backward", Channels},
    {"avg_pool3d", Channels},
    {"avg_pool3d_backward", Channels},
    {"channel_shuffle", Samples},
    {"col2im", Samples},
    {"convolution", Convolution},
    {"convolution_backward", ConvolutionBackward},
    {"grid_sampler_2d", Samples},
    {"grid_sampler_2d_backward", Samples},
    {"im2col", Samples},
    {"max_pool2d_with_indices", Channels},
    {"max_pool2d_with_indices_backward", Channels},
    {"max_pool3d_with_indices", Channels},
    {"max_pool3d_with_indices_backward", Channels},
    {"native_batch_norm", BatchNormInPlace},
    {"native_batch_norm_backward", BatchNorm},
    {"native_group_norm", GroupNorm},
    {"native_group_norm_backward", GroupNormBackward},
    {"pixel_shuffle", Samples},
    {"pixel_unshuffle", Samples},
    {"reflection_pad1d", Channels},
    {"reflection_pad1d_backward", Channels},
    {"reflection_pad2d", Channels},
    {"reflection_pad2d_backward", Channels},
    {"reflection_pad3d", Channels},
    {"reflection_pad3d_backward", Channels},
    {"replication_pad1d", Channels},
    {"replication_pad1d_backward", Channels},
    {"replication_pad2d", Channels},
    {"replication_pad2d_backward", Channels},
    {"replication_pad3d", Channels},
    {"replication_pad3d_backward", Channels},
    {"upsample_bicubic2d", Channels},
    {"upsample_bicubic2d_backward", Channels},
    {"upsample_bilinear2d", Channels},
    {"upsample_bilinear2d_backward", Channels},
    {"upsample_linear1d", Channels},
    {"upsample_linear1d_backward", Channels},
    {"upsample_nearest1d", Channels},
    {"upsample_nearest1d_backward", Channels},
    {"upsample_nearest2d", Channels},
    {"upsample_nearest2d_backward", Channels},
    {"upsample_nearest3d", Channels},
    {"upsample_nearest3d_backward", Channels},
    {"upsample_trilinear3d", Channels},
    {"upsample_trilinear3d_backward", Channels},
};

}  // namespace

std::span<const RuleEntry> ImageRules() {
  return kImageRules;
}

}  // namespace strata
