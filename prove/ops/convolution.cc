#include <algorithm>
#include <optional>
#include <utility>

#include "prove/ops/elementwise.h"
#include "prove/ops/products.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// What a convolution multiplies. For each sample, group and place k of the kernel
///
///   small[a, p] · large[b, p · stride − padding + k · dilation] · weight[a, b, k]
///
/// A convolution sums this over b and k, a transposed one over a, p and k. The gradient of one
/// operand is the sum over what the other two have: each of the three is made from the other two.
struct Convolution {
  Sizes stride, padding, dilation, output_padding;  // of each spatial dimension
  bool transposed = false;
  int64_t groups = 1;
};

/// The integers of each spatial dimension; one stands for all.
Result<Sizes> PerDimension(const Call& call, size_t position, std::string_view name, size_t rank,
                           int64_t least) {
  Sizes integers = call.IntegersAt(position, name).value_or(Sizes{});
  if (integers.size() == 1) integers.resize(rank, integers[0]);
  if (integers.size() != rank ||
      std::ranges::any_of(integers, [&](int64_t i) { return i < least; }))
    return Error(ErrorCode::kInvalid, "{} of a convolution in {} dimensions", name, rank);
  return integers;
}

/// The arguments from `stride` on, which is at `position`.
Result<Convolution> ConvolutionAt(const Call& call, size_t position, const Tensor& weight) {
  if (weight.dim() < 3) return Error(ErrorCode::kInvalid, "a kernel without dimensions");
  const auto rank = static_cast<size_t>(weight.dim() - 2);
  Convolution c;
  STRATA_TRY(c.stride, PerDimension(call, position, "stride", rank, 1));
  STRATA_TRY(c.padding, PerDimension(call, position + 1, "padding", rank, 0));
  STRATA_TRY(c.dilation, PerDimension(call, position + 2, "dilation", rank, 1));
  c.transposed = call.FlagAt(position + 3, "transposed");
  STRATA_TRY(c.output_padding, PerDimension(call, position + 4, "output_padding", rank, 0));
  c.groups = call.IntegerAt(position + 5, "groups", 1);
  if (c.groups < 1 || weight.size(0) % c.groups != 0)
    return Error(ErrorCode::kInvalid, "{} groups of {} channels", c.groups, weight.size(0));
  return c;
}

/// The sizes of the result for an input. Errors: the input does not fit the kernel.
Result<Sizes> ResultSizes(const Convolution& c, const Sizes& input, const Sizes& weight) {
  const int64_t channels = c.transposed ? weight[0] : weight[1] * c.groups;
  if (input.size() != weight.size() || input[1] != channels)
    return Error(ErrorCode::kInvalid, "an input that does not fit the kernel");
  Sizes sizes = {input[0], c.transposed ? weight[1] * c.groups : weight[0]};
  for (size_t i = 0; i < c.stride.size(); ++i) {
    const int64_t reach = c.dilation[i] * (weight[i + 2] - 1) + 1, size = input[i + 2];
    const int64_t padded = size + 2 * c.padding[i];
    if (!c.transposed && padded < reach)
      return Error(ErrorCode::kInvalid, "a kernel that is larger than its input");
    const int64_t whole = (size - 1) * c.stride[i] - 2 * c.padding[i] + reach + c.output_padding[i];
    sizes.push_back(c.transposed ? whole : (padded - reach) / c.stride[i] + 1);
    if (sizes.back() < 1) return Error(ErrorCode::kInvalid, "an output without elements");
  }
  return sizes;
}

/// Of one sample and one group: channels of `large` with the padding around them, and a view of all
/// the places that the kernel reads.
struct Window {
  Tensor inside;  ///< [b, q…]: what is not padding
  Tensor places;  ///< [p…, b, k…]
};

/// Filled with 0. `sizes`: of `large`, with the channels of one group; `small` and `weight` give
/// the sizes of the places and of the kernel.
Window MakeWindow(const Convolution& c, const Sizes& large, const Sizes& small,
                  const Sizes& weight) {
  const size_t rank = c.stride.size();
  Sizes padded = {weight[1]};
  for (size_t i = 0; i < rank; ++i)
    padded.push_back(large[i + 2] + 2 * c.padding[i]);
  const Tensor all(Domain::kFloat, padded, 0);
  Sizes inside = {weight[1]};
  int64_t offset = 0;
  Sizes places, strides;
  for (size_t i = 0; i < rank; ++i) {
    inside.push_back(large[i + 2]);
    offset += c.padding[i] * all.strides()[i + 1];
    places.push_back(small[i + 2]);
    strides.push_back(c.stride[i] * all.strides()[i + 1]);
  }
  places.push_back(weight[1]);
  strides.push_back(all.strides()[0]);
  for (size_t i = 0; i < rank; ++i) {
    places.push_back(weight[i + 2]);
    strides.push_back(c.dilation[i] * all.strides()[i + 1]);
  }
  return {Tensor(Domain::kFloat, all.storage(), inside, all.strides(), offset),
          Tensor(Domain::kFloat, all.storage(), places, strides, 0)};
}

/// Channels `group` of `groups` of one sample.
Tensor ChannelsOf(const Tensor& a, int64_t sample, int64_t group, int64_t groups) {
  Sizes sizes(a.sizes().begin() + 1, a.sizes().end());
  sizes[0] /= groups;
  return {a.domain(),
          a.storage(),
          sizes,
          {a.strides().begin() + 1, a.strides().end()},
          a.offset() + sample * a.strides()[0] + group * sizes[0] * a.strides()[1]};
}

/// Filters `group` of `groups`.
Tensor FiltersOf(const Tensor& weight, int64_t group, int64_t groups) {
  Sizes sizes = weight.sizes();
  sizes[0] /= groups;
  return {weight.domain(), weight.storage(), sizes, weight.strides(),
          weight.offset() + group * sizes[0] * weight.strides()[0]};
}

Tensor AsMatrix(const Tensor& a) {
  return a.Reshape({a.size(0), a.size(0) == 0 ? 0 : a.numel() / a.size(0)});
}

/// [p…, b, k…] as a matrix with a row for each place.
Tensor RowsOfPlaces(const Tensor& places, size_t rank) {
  const int64_t rows = Product(std::span(places.sizes()).first(rank));
  return places.Reshape({rows, rows == 0 ? 0 : places.numel() / rows});
}

/// `small` from the other two.
Result<Tensor> SmallOf(const Convolution& c, const Tensor& large, const Tensor& weight,
                       const Sizes& sizes) {
  const Tensor small(Domain::kFloat, sizes, 0);
  for (int64_t sample = 0; sample < sizes[0]; ++sample) {
    for (int64_t group = 0; group < c.groups; ++group) {
      const Window window = MakeWindow(c, large.sizes(), sizes, weight.sizes());
      window.inside.Write(ChannelsOf(large, sample, group, c.groups).Read());
      const Tensor rows = RowsOfPlaces(window.places, c.stride.size());
      STRATA_TRY(const Tensor product,
                 MatrixProduct(AsMatrix(FiltersOf(weight, group, c.groups)), Transposed(rows)));
      ChannelsOf(small, sample, group, c.groups).Write(product.Read());
    }
  }
  return small;
}

/// `large` from the other two.
Result<Tensor> LargeOf(const Convolution& c, const Tensor& small, const Tensor& weight,
                       const Sizes& sizes) {
  const Tensor large(Domain::kFloat, sizes, 0);
  for (int64_t sample = 0; sample < sizes[0]; ++sample) {
    for (int64_t group = 0; group < c.groups; ++group) {
      const Tensor channels = AsMatrix(ChannelsOf(small, sample, group, c.groups));
      STRATA_TRY(const Tensor product,
                 MatrixProduct(Transposed(channels), AsMatrix(FiltersOf(weight, group, c.groups))));
      const Window window = MakeWindow(c, sizes, small.sizes(), weight.sizes());
      const std::vector<uint64_t>& terms = product.storage()->words;
      std::vector<uint64_t>& sums = window.places.storage()->words;
      size_t next = 0;
      ForEachOffset(window.places, [&](int64_t at) {
        uint64_t& sum = sums[static_cast<size_t>(at)];
        sum = prove::Add(sum, terms[next++]);
      });
      ChannelsOf(large, sample, group, c.groups).Write(window.inside.Read());
    }
  }
  return large;
}

/// `weight` from the other two.
Result<Tensor> WeightOf(const Convolution& c, const Tensor& small, const Tensor& large,
                        const Sizes& sizes) {
  const Tensor weight(Domain::kFloat, sizes, 0);
  for (int64_t sample = 0; sample < small.size(0); ++sample) {
    for (int64_t group = 0; group < c.groups; ++group) {
      const Window window = MakeWindow(c, large.sizes(), small.sizes(), sizes);
      window.inside.Write(ChannelsOf(large, sample, group, c.groups).Read());
      const Tensor rows = RowsOfPlaces(window.places, c.stride.size());
      STRATA_TRY(const Tensor product,
                 MatrixProduct(AsMatrix(ChannelsOf(small, sample, group, c.groups)), rows));
      const Tensor filters = FiltersOf(weight, group, c.groups);
      STRATA_TRY(const Tensor sum, Add(filters, product.Reshape(filters.sizes())));
      filters.Write(sum.Read());
    }
  }
  return weight;
}

Result<Tensor> NumbersAt(const Call& call, size_t position, std::string_view name) {
  STRATA_TRY(const Tensor tensor, call.TensorAt(position, name));
  if (tensor.domain() == Domain::kFloat) return tensor;
  return Error(ErrorCode::kUnsupported, "a convolution of tensors that are not real numbers");
}

/// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
Result<Values> EvaluateConvolution(Call& call) {
  STRATA_TRY(const Tensor input, NumbersAt(call, 0, "input"));
  STRATA_TRY(const Tensor weight, NumbersAt(call, 1, "weight"));
  STRATA_TRY(const Convolution c, ConvolutionAt(call, 3, weight));
  STRATA_TRY(const Sizes sizes, ResultSizes(c, input.sizes(), weight.sizes()));
  STRATA_TRY(Tensor result,
             c.transposed ? LargeOf(c, input, weight, sizes) : SmallOf(c, input, weight, sizes));
  if (call.Find(2, "bias") == nullptr) return Values{std::move(result)};
  STRATA_TRY(const Tensor bias, NumbersAt(call, 2, "bias"));
  Sizes of_channels(sizes.size(), 1);
  of_channels[1] = sizes[1];
  if (bias.numel() != sizes[1]) return Error(ErrorCode::kInvalid, "a bias of other channels");
  STRATA_TRY(Tensor sum, Add(result, bias.Reshape(of_channels)));
  return Values{std::move(sum)};
}

/// convolution_backward(gradient, input, weight, bias_sizes, stride, padding, dilation, transposed,
/// output_padding, groups, output_mask) -> gradients of input, weight and bias
Result<Values> EvaluateConvolutionBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, NumbersAt(call, 0, "grad_output"));
  STRATA_TRY(const Tensor input, NumbersAt(call, 1, "input"));
  STRATA_TRY(const Tensor weight, NumbersAt(call, 2, "weight"));
  STRATA_TRY(const Convolution c, ConvolutionAt(call, 4, weight));
  STRATA_TRY(const Sizes sizes, ResultSizes(c, input.sizes(), weight.sizes()));
  if (gradient.sizes() != sizes)
    return Error(ErrorCode::kInvalid, "a gradient of other sizes than the convolution");
  const Sizes mask = call.IntegersAt(10, "output_mask").value_or(Sizes{1, 1, 1});
  if (mask.size() != 3) return Error(ErrorCode::kInvalid, "a mask of other than three results");
  Values results(std::max<size_t>(3, call.num_results()));
  if (mask[0] != 0) {
    STRATA_TRY(results[0], c.transposed ? SmallOf(c, gradient, weight, input.sizes())
                                        : LargeOf(c, gradient, weight, input.sizes()));
  }
  if (mask[1] != 0) {
    STRATA_TRY(results[1], c.transposed ? WeightOf(c, input, gradient, weight.sizes())
                                        : WeightOf(c, gradient, input, weight.sizes()));
  }
  if (mask[2] != 0) {
    Sizes dims = {0};
    for (int64_t dim = 2; dim < gradient.dim(); ++dim)
      dims.push_back(dim);
    results[2] = SumOver(gradient, dims, /*keep=*/false);
  }
  return results;
}

constexpr OpDefinition kConvolutionOps[] = {
    {"aten.convolution", EvaluateConvolution},
    {"aten.convolution_backward", EvaluateConvolutionBackward},
};

}  // namespace

std::span<const OpDefinition> ConvolutionOps() {
  return kConvolutionOps;
}

}  // namespace strata::prove
