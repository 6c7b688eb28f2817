#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "prove/ops/elementwise.h"
#include "prove/ops/norms.h"
#include "prove/ops/reductions.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// All dimensions but that of the channels.
Sizes AllButChannels(const Tensor& x) {
  Sizes dims = {0};
  for (int64_t dim = 2; dim < x.dim(); ++dim)
    dims.push_back(dim);
  return dims;
}

/// A number for each channel, with the dimensions of `x`.
Result<Tensor> PerChannel(const Call& call, const Tensor& x, size_t position,
                          std::string_view name) {
  STRATA_TRY(const Tensor a, call.TensorAt(position, name));
  if (a.numel() != x.size(1)) return Error(ErrorCode::kInvalid, "{} of other channels", name);
  Sizes sizes(x.sizes().size(), 1);
  sizes[1] = x.size(1);
  return a.Reshape(sizes);
}

Result<Tensor> ImageAt(const Call& call, size_t position) {
  STRATA_TRY(const Tensor x, call.TensorAt(position));
  if (x.dim() >= 2 && x.domain() == Domain::kFloat) return x;
  return Error(ErrorCode::kInvalid, "a norm of a tensor without channels");
}

/// a · weight + bias, those that there are.
Result<Tensor> WithWeights(const Call& call, Tensor a, size_t weight, size_t bias) {
  if (call.Find(weight, "weight") != nullptr) {
    STRATA_TRY(const Tensor factor, PerChannel(call, a, weight, "weight"));
    STRATA_TRY(a, Mul(a, factor));
  }
  if (call.Find(bias, "bias") != nullptr) {
    STRATA_TRY(const Tensor shift, PerChannel(call, a, bias, "bias"));
    STRATA_TRY(a, Add(a, shift));
  }
  return a;
}

/// What differs between the batch norms of ATen, beside the five tensors that they begin with.
struct BatchNormArguments {
  bool has_statistics = false;  ///< a running mean and variance
  bool training = false;        ///< by the mean and variance of the batch
  Residue momentum = 0, eps = 0;
};

Result<BatchNormArguments> BatchNormArgumentsOf(const Call& call) {
  const bool no_statistics = call.op().ends_with(".no_stats");
  const bool has_flag = call.op().find("batch_norm_legit_no_training") == std::string_view::npos &&
                        call.op().find("update") == std::string_view::npos;
  const size_t next = no_statistics ? 3 : 5;
  BatchNormArguments arguments;
  arguments.has_statistics = !no_statistics && call.Find(3, "running_mean") != nullptr;
  arguments.training = has_flag ? call.FlagAt(next, "training")
                                : call.op().find("with_update") != std::string_view::npos;
  const size_t momentum = has_flag ? next + 1 : next;
  STRATA_TRY(arguments.momentum, call.NumberAt(momentum, "momentum", 0));
  STRATA_TRY(arguments.eps, call.NumberAt(momentum + 1, "eps", 0));
  if (!arguments.training && !arguments.has_statistics)
    return Error(ErrorCode::kInvalid, "a batch norm without statistics");
  return arguments;
}

/// new · momentum + old · (1 − momentum)
Result<Tensor> Updated(const Tensor& running, const Tensor& batch, Residue momentum) {
  return Add(Scale(batch.Reshape(running.sizes()), momentum),
             Scale(running, prove::Sub(1, momentum)));
}

/// The running mean and variance after the batch. The variance is not biased.
Result<Values> UpdatedStatistics(const Call& call, const Tensor& x, const Tensor& mean,
                                 const Tensor& variance, Residue momentum) {
  STRATA_TRY(const Tensor running_mean, call.TensorAt(3, "running_mean"));
  STRATA_TRY(const Tensor running_variance, call.TensorAt(4, "running_var"));
  if (running_mean.numel() != x.size(1) || running_variance.numel() != x.size(1))
    return Error(ErrorCode::kInvalid, "statistics of other channels");
  const int64_t count = CountOver(x, AllButChannels(x));
  const Tensor unbiased = Scale(variance, Div(FromInteger(count), FromInteger(count - 1)));
  STRATA_TRY(Tensor new_mean, Updated(running_mean, mean, momentum));
  STRATA_TRY(Tensor new_variance, Updated(running_variance, unbiased, momentum));
  return Values{std::move(new_mean), std::move(new_variance)};
}

/// Where the running statistics go.
enum class Running : uint8_t {
  kResults,  ///< they are the last results
  kWritten,  ///< into the operands
  kHidden,   ///< into the operands, though the schema of the operator does not say so
};

/// (x − mean) r · weight + bias, mean, r; r = 1 / deviation. By running statistics the last two are
/// empty, as on CPUs. `kReserve`: an empty tensor follows, for libraries.
template <Running kRunning, bool kReserve>
Result<Values> EvaluateBatchNorm(Call& call) {
  STRATA_TRY(const Tensor x, ImageAt(call, 0));
  STRATA_TRY(const BatchNormArguments arguments, BatchNormArgumentsOf(call));
  const Sizes dims = AllButChannels(x);
  Tensor mean, variance;
  if (arguments.training) {
    mean = MeanOver(x, dims);
    STRATA_TRY(const Tensor centered, Sub(x, mean));
    STRATA_TRY(const Tensor squares, Mul(centered, centered));
    variance = MeanOver(squares, dims);
  } else {
    STRATA_TRY(mean, PerChannel(call, x, 3, "running_mean"));
    STRATA_TRY(variance, PerChannel(call, x, 4, "running_var"));
  }
  STRATA_TRY(const Tensor inverse, InverseRoot(variance, arguments.eps));
  STRATA_TRY(const Tensor centered, Sub(x, mean));
  STRATA_TRY(Tensor normed, Mul(centered, inverse));
  STRATA_TRY(Tensor result, WithWeights(call, std::move(normed), 1, 2));
  const Sizes channels = {arguments.training ? x.size(1) : 0};
  const Tensor none(Domain::kFloat, {0}, 0);
  Values results = {std::move(result), arguments.training ? mean.Reshape(channels) : none,
                    arguments.training ? inverse.Reshape(channels) : none};
  if (kReserve) results.emplace_back(Tensor(Domain::kInteger, {0}, 0));
  Values running;
  if (arguments.training && arguments.has_statistics) {
    if (kRunning == Running::kHidden)
      return Error(ErrorCode::kUnsupported, "writes to an operand that is no output of it");
    STRATA_TRY(running, UpdatedStatistics(call, x, mean, variance, arguments.momentum));
  }
  if (kRunning == Running::kWritten && !running.empty()) {
    for (size_t i = 0; i < 2; ++i) {
      STRATA_TRY(const Tensor target,
                 call.TensorAt(3 + i, i == 0 ? "running_mean" : "running_var"));
      target.Write(std::get<Tensor>(running[i]).Read());
    }
  } else if (kRunning == Running::kResults) {
    for (size_t i = 0; i < 2; ++i) {
      if (running.empty() && call.Find(3 + i, {}) != nullptr) {
        STRATA_TRY(const Tensor unchanged, call.TensorAt(3 + i));
        results.emplace_back(unchanged.Copy());
      } else {
        results.push_back(running.empty() ? Value() : std::move(running[i]));
      }
    }
  }
  return results;
}

/// What the mask asks for: the gradients of input, weight and bias, where n is the norm's result.
Result<Values> MaskedGradients(const Call& call, size_t mask_position, Tensor of_input,
                               const Tensor& gradient, const Tensor& normed) {
  const Sizes mask = call.IntegersAt(mask_position, "output_mask").value_or(Sizes{1, 1, 1});
  if (mask.size() != 3) return Error(ErrorCode::kInvalid, "a mask of other than three results");
  Values results(std::max<size_t>(3, call.num_results()));
  const Sizes dims = AllButChannels(gradient);
  if (mask[0] != 0) results[0] = std::move(of_input);
  if (mask[1] != 0) {
    STRATA_TRY(const Tensor products, Mul(gradient, normed));
    results[1] = SumOver(products, dims, /*keep=*/false);
  }
  if (mask[2] != 0) results[2] = SumOver(gradient, dims, /*keep=*/false);
  return results;
}

/// native_batch_norm_backward(g, x, weight, running_mean, running_var, mean, r, train, eps, mask)
Result<Values> EvaluateBatchNormBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, ImageAt(call, 0));
  STRATA_TRY(const Tensor x, ImageAt(call, 1));
  const bool training = call.FlagAt(7, "train");
  STRATA_TRY(const Tensor mean, PerChannel(call, x, training ? 5 : 3, "mean"));
  STRATA_TRY(Tensor inverse, PerChannel(call, x, training ? 6 : 4, "deviation"));
  if (!training) {
    STRATA_TRY(const Residue eps, call.NumberAt(8, "eps", 0));
    STRATA_TRY(inverse, InverseRoot(inverse, eps));
  }
  STRATA_TRY(const Tensor centered, Sub(x, mean));
  STRATA_TRY(const Tensor normed, Mul(centered, inverse));
  STRATA_TRY(const Tensor weighted, WithWeights(call, gradient, 2, SIZE_MAX));
  STRATA_TRY(Tensor of_input, training
                                  ? GradientOfNorm(weighted, normed, inverse, AllButChannels(x))
                                  : Mul(weighted, inverse));
  return MaskedGradients(call, 9, std::move(of_input), gradient, normed);
}

/// One row of numbers for each sample and group of channels. `position`: of the number of samples,
/// after which those of channels, of the elements of a channel, and of groups follow.
Result<Sizes> GroupedSizes(const Call& call, const Tensor& x, size_t position) {
  const int64_t samples = call.IntegerAt(position, "N", 0);
  const int64_t channels = call.IntegerAt(position + 1, "C", 0);
  const int64_t elements = call.IntegerAt(position + 2, "HxW", 0);
  const int64_t groups = call.IntegerAt(position + 3, "group", 0);
  if (groups < 1 || channels != x.size(1) || channels % groups != 0 || samples != x.size(0) ||
      samples * channels * elements != x.numel())
    return Error(ErrorCode::kInvalid, "sizes of a norm that are not those of its tensor");
  return Sizes{samples, groups, channels / groups * elements};
}

/// native_group_norm(x, weight, bias, N, C, HxW, group, eps) -> the norm, mean and r of each group
Result<Values> EvaluateGroupNorm(Call& call) {
  STRATA_TRY(const Tensor x, ImageAt(call, 0));
  STRATA_TRY(const Sizes grouped, GroupedSizes(call, x, 3));
  STRATA_TRY(const Residue eps, call.NumberAt(7, "eps", 0));
  const Tensor rows = x.Reshape(grouped);
  const Tensor mean = MeanOver(rows, {2});
  STRATA_TRY(const Tensor centered, Sub(rows, mean));
  STRATA_TRY(const Tensor squares, Mul(centered, centered));
  STRATA_TRY(const Tensor inverse, InverseRoot(MeanOver(squares, {2}), eps));
  STRATA_TRY(const Tensor normed, Mul(centered, inverse));
  STRATA_TRY(Tensor result, WithWeights(call, normed.Reshape(x.sizes()), 1, 2));
  const Sizes per_group = {grouped[0], grouped[1]};
  return Values{std::move(result), mean.Reshape(per_group), inverse.Reshape(per_group)};
}

/// native_group_norm_backward(g, x, mean, r, weight, N, C, HxW, group, mask)
Result<Values> EvaluateGroupNormBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, ImageAt(call, 0));
  STRATA_TRY(const Tensor x, ImageAt(call, 1));
  STRATA_TRY(const Tensor mean, call.TensorAt(2));
  STRATA_TRY(const Tensor inverse, call.TensorAt(3));
  STRATA_TRY(const Sizes grouped, GroupedSizes(call, x, 5));
  const Sizes per_group = {grouped[0], grouped[1], 1};
  if (mean.numel() != Product(per_group) || inverse.numel() != Product(per_group))
    return Error(ErrorCode::kInvalid, "means of other groups");
  const Tensor inverses = inverse.Reshape(per_group);
  STRATA_TRY(const Tensor centered, Sub(x.Reshape(grouped), mean.Reshape(per_group)));
  STRATA_TRY(const Tensor normed, Mul(centered, inverses));
  STRATA_TRY(const Tensor weighted, WithWeights(call, gradient, 4, SIZE_MAX));
  STRATA_TRY(const Tensor of_rows,
             GradientOfNorm(weighted.Reshape(grouped), normed, inverses, {2}));
  return MaskedGradients(call, 9, of_rows.Reshape(x.sizes()), gradient, normed.Reshape(x.sizes()));
}

constexpr OpDefinition kChannelNormOps[] = {
    {"aten._batch_norm_no_update", EvaluateBatchNorm<Running::kWritten, true>},
    {"aten._batch_norm_with_update", EvaluateBatchNorm<Running::kWritten, true>},
    {"aten._batch_norm_with_update_functional", EvaluateBatchNorm<Running::kResults, true>},
    {"aten._native_batch_norm_legit", EvaluateBatchNorm<Running::kWritten, false>},
    {"aten._native_batch_norm_legit_functional", EvaluateBatchNorm<Running::kResults, false>},
    {"aten._native_batch_norm_legit_no_training", EvaluateBatchNorm<Running::kWritten, false>},
    {"aten.batch_norm_backward", EvaluateBatchNormBackward},
    {"aten.native_batch_norm", EvaluateBatchNorm<Running::kHidden, false>},
    {"aten.native_batch_norm_backward", EvaluateBatchNormBackward},
    {"aten.native_group_norm", EvaluateGroupNorm},
    {"aten.native_group_norm_backward", EvaluateGroupNormBackward},
};

}  // namespace

std::span<const OpDefinition> ChannelNormOps() {
  return kChannelNormOps;
}

}  // namespace strata::prove
