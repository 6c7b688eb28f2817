#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"
#include "prove/ops/windows.h"

namespace strata::prove {
namespace {

/// `leading` dimensions of a tensor, then others.
Sizes WithSpatial(const Sizes& sizes, const Sizes& spatial) {
  Sizes result(sizes.begin(), sizes.end() - std::ssize(spatial));
  result.insert(result.end(), spatial.begin(), spatial.end());
  return result;
}

/// Numbers of which the last dimensions are planes.
Result<Tensor> PlanesAt(const Call& call, size_t position, size_t rank) {
  STRATA_TRY(const Tensor a, call.TensorAt(position));
  if (a.domain() != Domain::kFloat)
    return Error(ErrorCode::kUnsupported, "windows of tensors that are not real numbers");
  if (rank == 0 || static_cast<size_t>(a.dim()) < rank)
    return Error(ErrorCode::kInvalid, "windows of a tensor with {} dimensions", a.dim());
  return a;
}

int64_t PlanesIn(const Tensor& a, size_t rank) {
  return Product(std::span(a.sizes()).first(a.sizes().size() - rank));
}

std::vector<Residue> InversesOf(const std::vector<int64_t>& counts) {
  std::vector<Residue> inverses;
  for (const int64_t count : counts)
    inverses.push_back(FromInteger(count));
  InvertAll(inverses);
  return inverses;
}

/// The mean over each window.
Tensor MeansOf(const Tensor& a, const PlaneWindows& windows) {
  const std::vector<Residue> inverses = InversesOf(windows.counts);
  const std::vector<uint64_t> words = a.Read();
  std::vector<uint64_t> means;
  const int64_t planes = PlanesIn(a, windows.input.size()), size = Product(windows.input);
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (size_t i = 0; i < windows.elements.size(); ++i) {
      Residue sum = 0;
      for (const int64_t at : windows.elements[i])
        sum = prove::Add(sum, words[static_cast<size_t>(plane * size + at)]);
      means.push_back(prove::Mul(sum, inverses[i]));
    }
  }
  return OfWords(Domain::kFloat, WithSpatial(a.sizes(), windows.output), std::move(means));
}

/// What the gradient of the means is for each element.
Result<Tensor> GradientOfMeans(const Tensor& gradient, const PlaneWindows& windows) {
  if (WithSpatial(gradient.sizes(), windows.output) != gradient.sizes())
    return Error(ErrorCode::kInvalid, "a gradient of other sizes than its windows");
  const std::vector<Residue> inverses = InversesOf(windows.counts);
  const std::vector<uint64_t> words = gradient.Read();
  Tensor result(Domain::kFloat, WithSpatial(gradient.sizes(), windows.input), 0);
  std::vector<uint64_t>& sums = result.storage()->words;
  const int64_t planes = PlanesIn(gradient, windows.input.size()), size = Product(windows.input);
  size_t next = 0;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (size_t i = 0; i < windows.elements.size(); ++i) {
      const Residue share = prove::Mul(words[next++], inverses[i]);
      for (const int64_t at : windows.elements[i]) {
        uint64_t& sum = sums[static_cast<size_t>(plane * size + at)];
        sum = prove::Add(sum, share);
      }
    }
  }
  return result;
}

/// Means, or their backward: of operand 0 by windows of operand 1.
Result<Values> MeansOrBackward(const Call& call, const PlaneWindows& windows, bool is_backward) {
  STRATA_TRY(const Tensor a, PlanesAt(call, 0, windows.input.size()));
  if (!is_backward) return Values{MeansOf(a, windows)};
  STRATA_TRY(Tensor gradient, GradientOfMeans(a, windows));
  return Values{std::move(gradient)};
}

/// avg_pool2d(x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
/// its backward has the gradient before x.
template <bool kBackward>
Result<Values> EvaluateAveragePool(Call& call) {
  const size_t rank = SpatialDims(call.op()), x = kBackward ? 1 : 0;
  STRATA_TRY(const Tensor a, PlanesAt(call, x, rank));
  STRATA_TRY(Pooling pooling, PoolingAt(call, x + 1, rank));
  pooling.ceil = call.FlagAt(x + 4, "ceil_mode");
  pooling.counts_padding = call.FlagAt(x + 5, "count_include_pad", true);
  STRATA_TRY(PlaneWindows windows, WindowsOf(pooling, a));
  if (const int64_t divisor = call.IntegerAt(x + 6, "divisor_override", 0); divisor != 0)
    std::ranges::fill(windows.counts, divisor);
  return MeansOrBackward(call, windows, kBackward);
}

/// That number of windows along each axis, which overlap where it does not divide the size.
Result<PlaneWindows> AdaptiveWindows(const Tensor& a, Sizes counts, size_t rank) {
  if (counts.size() == 1) counts.resize(rank, counts[0]);
  if (counts.size() != rank) return Error(ErrorCode::kInvalid, "an output of other dimensions");
  std::vector<AxisWindows> axes;
  for (size_t axis = 0; axis < rank; ++axis) {
    AxisWindows windows;
    const int64_t count = counts[axis];
    windows.size = a.sizes()[a.sizes().size() - rank + axis];
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int64_t>& elements = windows.elements.emplace_back();
      for (int64_t at = i * windows.size / count; at < ((i + 1) * windows.size + count - 1) / count;
           ++at)
        elements.push_back(at);
      windows.counts.push_back(std::ssize(elements));
    }
    axes.push_back(std::move(windows));
  }
  return Combine(axes);
}

/// _adaptive_avg_pool2d(x, output_size); its backward is called with the gradient and x.
template <bool kBackward>
Result<Values> EvaluateAdaptiveAveragePool(Call& call) {
  const size_t rank = SpatialDims(call.op());
  STRATA_TRY(const Tensor a, PlanesAt(call, kBackward ? 1 : 0, rank));
  STRATA_TRY(const Tensor gradient, PlanesAt(call, 0, rank));
  const std::span<const int64_t> spatial = std::span(gradient.sizes()).last(rank);
  Sizes counts(spatial.begin(), spatial.end());
  if (!kBackward) counts = call.IntegersAt(1, "output_size").value_or(Sizes{});
  STRATA_TRY(const PlaneWindows windows, AdaptiveWindows(a, std::move(counts), rank));
  return MeansOrBackward(call, windows, kBackward);
}

/// How many dimensions the windows have that `kernel_size` at `position` gives.
size_t RankOf(const Call& call, size_t position) {
  const size_t rank = SpatialDims(call.op());
  return rank > 0 ? rank : call.IntegersAt(position, "kernel_size").value_or(Sizes{}).size();
}

/// Of max_pool2d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode).
Result<Pooling> MaximumPoolingOf(const Call& call, size_t rank) {
  STRATA_TRY(Pooling pooling, PoolingAt(call, 1, rank));
  if (auto dilation = call.IntegersAt(4, "dilation"); dilation && !dilation->empty()) {
    if (dilation->size() == 1) dilation->resize(rank, dilation->front());
    if (dilation->size() != rank || std::ranges::any_of(*dilation, [](int64_t d) { return d < 1; }))
      return Error(ErrorCode::kInvalid, "windows of other dimensions");
    pooling.dilation = *std::move(dilation);
  }
  pooling.ceil = call.FlagAt(5, "ceil_mode");
  return pooling;
}

/// The first of the largest elements of each window, and where it lies in its plane.
Result<Values> MaximaOf(const Tensor& a, const PlaneWindows& windows) {
  const std::vector<uint64_t> words = a.Read();
  std::vector<uint64_t> values, indices;
  const int64_t planes = PlanesIn(a, windows.input.size()), size = Product(windows.input);
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (const std::vector<int64_t>& window : windows.elements) {
      if (window.empty()) return Error(ErrorCode::kInvalid, "a window of padding alone");
      const auto word = [&](int64_t at) { return words[static_cast<size_t>(plane * size + at)]; };
      const auto is_code = [](Residue x) { return x == kNan || x == kUndefined; };
      int64_t best = window[0];
      for (const int64_t at : window)
        if (!is_code(word(best)) && (is_code(word(at)) || Compare(word(at), word(best)) > 0))
          best = at;
      values.push_back(word(best));
      indices.push_back(static_cast<uint64_t>(best));
    }
  }
  const Sizes sizes = WithSpatial(a.sizes(), windows.output);
  return Values{OfWords(Domain::kFloat, sizes, std::move(values)),
                OfWords(Domain::kInteger, sizes, std::move(indices))};
}

Result<Values> EvaluateMaximumPool(Call& call) {
  const size_t rank = RankOf(call, 1);
  STRATA_TRY(const Tensor a, PlanesAt(call, 0, rank));
  STRATA_TRY(const Pooling pooling, MaximumPoolingOf(call, rank));
  STRATA_TRY(const PlaneWindows windows, WindowsOf(pooling, a));
  return MaximaOf(a, windows);
}

/// adaptive_max_pool2d(x, output_size)
Result<Values> EvaluateAdaptiveMaximumPool(Call& call) {
  const size_t rank = SpatialDims(call.op());
  STRATA_TRY(const Tensor a, PlanesAt(call, 0, rank));
  STRATA_TRY(const PlaneWindows windows,
             AdaptiveWindows(a, call.IntegersAt(1, "output_size").value_or(Sizes{}), rank));
  return MaximaOf(a, windows);
}

/// Places in windows from places in planes, or those from these. `input`: sizes of the planes.
template <bool kToPlanes>
Tensor ConvertPlaces(const Tensor& places, const Pooling& pooling, const Sizes& input) {
  const size_t rank = input.size();
  const Sizes &from = kToPlanes ? pooling.kernel : input, &to = kToPlanes ? input : pooling.kernel;
  std::vector<uint64_t> words = places.Read();
  const std::span<const int64_t> output = std::span(places.sizes()).last(rank);
  for (size_t i = 0; i < words.size(); ++i) {
    auto place = static_cast<int64_t>(words[i]), window = static_cast<int64_t>(i);
    int64_t result = 0, stride = 1;
    for (size_t axis = rank; axis-- > 0;) {
      const int64_t begin = window % output[axis] * pooling.stride[axis] - pooling.padding[axis];
      const int64_t at = place % from[axis];
      result += stride * (kToPlanes ? begin + at * pooling.dilation[axis]
                                    : (at - begin) / pooling.dilation[axis]);
      stride *= to[axis];
      place /= from[axis];
      window /= output[axis];
    }
    words[i] = static_cast<uint64_t>(result);
  }
  return OfWords(Domain::kInteger, places.sizes(), std::move(words));
}

/// _low_memory_max_pool_with_offsets(x, kernel_size, stride, padding, dilation, ceil_mode): where
/// the largest element lies in its window.
Result<Values> EvaluateMaximumPoolWithOffsets(Call& call) {
  const size_t rank = RankOf(call, 1);
  STRATA_TRY(Values results, EvaluateMaximumPool(call));
  STRATA_TRY(const Tensor a, PlanesAt(call, 0, rank));
  STRATA_TRY(const Pooling pooling, MaximumPoolingOf(call, rank));
  const std::span<const int64_t> spatial = std::span(a.sizes()).last(rank);
  results[1] = ConvertPlaces<false>(std::get<Tensor>(results[1]), pooling,
                                    Sizes(spatial.begin(), spatial.end()));
  return results;
}

/// _low_memory_max_pool_offsets_to_indices(offsets, kernel_size, input_size, stride, padding,
/// dilation)
Result<Values> EvaluateOffsetsToIndices(Call& call) {
  STRATA_TRY(const Tensor offsets, call.TensorAt(0));
  Pooling pooling;
  Sizes input;
  size_t position = 1;
  for (Sizes* list :
       {&pooling.kernel, &input, &pooling.stride, &pooling.padding, &pooling.dilation})
    *list = call.IntegersAt(position++, {}).value_or(Sizes{});
  const size_t rank = pooling.kernel.size();
  if (rank == 0 || input.size() != rank || pooling.stride.size() != rank ||
      pooling.padding.size() != rank || pooling.dilation.size() != rank ||
      static_cast<size_t>(offsets.dim()) < rank || std::ranges::count(pooling.kernel, 0) > 0)
    return Error(ErrorCode::kInvalid, "windows of other dimensions");
  return Values{ConvertPlaces<true>(offsets, pooling, input)};
}

/// max_pool2d_with_indices_backward(gradient, x, …, indices): each goes where the element was. An
/// index out of range leaves the whole plane undefined. `kIndices`: the position of the indices.
template <size_t kIndices>
Result<Values> EvaluateMaximumPoolBackward(Call& call) {
  const size_t rank = SpatialDims(call.op());
  STRATA_TRY(const Tensor gradient, PlanesAt(call, 0, rank));
  STRATA_TRY(const Tensor a, PlanesAt(call, 1, rank));
  STRATA_TRY(const Tensor indices, call.TensorAt(kIndices, "indices"));
  if (indices.sizes() != gradient.sizes() || indices.domain() != Domain::kInteger)
    return Error(ErrorCode::kInvalid, "indices of other sizes than the gradient");
  const std::vector<uint64_t> words = gradient.Read(), places = indices.Read();
  Tensor result(Domain::kFloat, a.sizes(), 0);
  std::vector<uint64_t>& sums = result.storage()->words;
  const int64_t planes = PlanesIn(a, rank);
  if (planes != PlanesIn(gradient, rank))
    return Error(ErrorCode::kInvalid, "a gradient of other sizes than its windows");
  const size_t size = sums.size() / static_cast<size_t>(std::max<int64_t>(planes, 1));
  const size_t count = words.size() / static_cast<size_t>(std::max<int64_t>(planes, 1));
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t begin = i / count * size;
    if (places[i] >= size) {
      std::fill_n(sums.begin() + static_cast<std::ptrdiff_t>(begin), size, kUndefined);
      continue;
    }
    uint64_t& sum = sums[begin + static_cast<size_t>(places[i])];
    sum = prove::Add(sum, words[i]);
  }
  return Values{std::move(result)};
}

/// The one element that each element of a larger plane reads. ATen computes it in 32 bits.
AxisWindows NearestOf(int64_t size, int64_t count, std::optional<double> scale) {
  AxisWindows windows;
  windows.size = size;
  const float step = scale && *scale > 0 ? static_cast<float>(1.0 / *scale)
                                         : static_cast<float>(size) / static_cast<float>(count);
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<int64_t>(std::floor(static_cast<float>(i) * step));
    windows.elements.push_back({std::min(at, size - 1)});
    windows.counts.push_back(1);
  }
  return windows;
}

std::optional<double> NumberOf(const Argument& argument) {
  if (const auto* number = std::get_if<double>(&argument.value)) return *number;
  if (const auto* number = std::get_if<int64_t>(&argument.value))
    return static_cast<double>(*number);
  return std::nullopt;
}

/// How an operator makes planes larger, by axis.
struct Enlargement {
  Sizes output;
  std::vector<std::optional<double>> scales;
};

/// Of upsample_nearest2d.vec(x, output_size, scale_factors), one of which is None.
Enlargement FactorsOf(const Call& call, std::span<const int64_t> input) {
  Enlargement enlargement;
  if (const auto output = call.IntegersAt(1, "output_size"))
    return {.output = *output, .scales = std::vector<std::optional<double>>(output->size())};
  const Argument* factors = call.Find(2, "scale_factors");
  const auto* list =
      factors == nullptr ? nullptr : std::get_if<std::vector<Argument>>(&factors->value);
  for (size_t axis = 0; list != nullptr && axis < std::min(list->size(), input.size()); ++axis) {
    const std::optional<double> scale = NumberOf((*list)[axis]);
    enlargement.scales.push_back(scale);
    enlargement.output.push_back(
        static_cast<int64_t>(std::floor(static_cast<double>(input[axis]) * scale.value_or(0))));
  }
  return enlargement;
}

/// upsample_nearest2d(x, output_size, scales_h, scales_w); its backward(gradient, output_size,
/// input_size, scales_h, scales_w).
template <bool kBackward>
Result<Values> EvaluateNearest(Call& call) {
  const size_t rank = SpatialDims(call.op());
  STRATA_TRY(const Tensor a, PlanesAt(call, 0, rank));
  const Sizes input = kBackward ? call.IntegersAt(2, "input_size").value_or(Sizes{}) : a.sizes();
  if (input.size() != a.sizes().size())
    return Error(ErrorCode::kInvalid, "an output of other dimensions");
  const std::span<const int64_t> spatial = std::span(input).last(rank);
  Enlargement enlargement;
  if (call.op().ends_with(".vec")) {
    if (kBackward) return Error(ErrorCode::kUnsupported, "an output size that is a factor");
    enlargement = FactorsOf(call, spatial);
  } else {
    enlargement.output = call.IntegersAt(1, "output_size").value_or(Sizes{});
    constexpr std::string_view kNames[] = {"scales_d", "scales_h", "scales_w"};
    for (size_t axis = 0; axis < rank; ++axis) {
      const std::string_view name = rank == 1 ? "scales" : kNames[3 - rank + axis];
      const Argument* scale = call.Find((kBackward ? 3 : 2) + axis, name);
      enlargement.scales.push_back(scale == nullptr ? std::nullopt : NumberOf(*scale));
    }
  }
  if (enlargement.output.size() != rank)
    return Error(ErrorCode::kInvalid, "an output of other dimensions");
  std::vector<AxisWindows> axes;
  for (size_t axis = 0; axis < rank; ++axis)
    axes.push_back(NearestOf(spatial[axis], enlargement.output[axis], enlargement.scales[axis]));
  return MeansOrBackward(call, Combine(axes), kBackward);
}

constexpr OpDefinition kPoolingOps[] = {
    {"aten._adaptive_avg_pool2d", EvaluateAdaptiveAveragePool<false>},
    {"aten._adaptive_avg_pool2d_backward", EvaluateAdaptiveAveragePool<true>},
    {"aten._adaptive_avg_pool3d", EvaluateAdaptiveAveragePool<false>},
    {"aten._adaptive_avg_pool3d_backward", EvaluateAdaptiveAveragePool<true>},
    {"aten.adaptive_max_pool2d", EvaluateAdaptiveMaximumPool},
    {"aten.adaptive_max_pool2d_backward", EvaluateMaximumPoolBackward<2>},
    {"aten.adaptive_max_pool3d", EvaluateAdaptiveMaximumPool},
    {"aten.adaptive_max_pool3d_backward", EvaluateMaximumPoolBackward<2>},
    {"aten.avg_pool2d", EvaluateAveragePool<false>},
    {"aten.avg_pool2d_backward", EvaluateAveragePool<true>},
    {"aten.avg_pool3d", EvaluateAveragePool<false>},
    {"aten.avg_pool3d_backward", EvaluateAveragePool<true>},
    {"aten.max_pool2d_with_indices", EvaluateMaximumPool},
    {"aten.max_pool2d_with_indices_backward", EvaluateMaximumPoolBackward<7>},
    {"aten.max_pool3d_with_indices", EvaluateMaximumPool},
    {"aten.max_pool3d_with_indices_backward", EvaluateMaximumPoolBackward<7>},
    {"aten.upsample_nearest1d", EvaluateNearest<false>},
    {"aten.upsample_nearest1d_backward", EvaluateNearest<true>},
    {"aten.upsample_nearest2d", EvaluateNearest<false>},
    {"aten.upsample_nearest2d_backward", EvaluateNearest<true>},
    {"aten.upsample_nearest3d", EvaluateNearest<false>},
    {"aten.upsample_nearest3d_backward", EvaluateNearest<true>},
    {"prims._low_memory_max_pool_offsets_to_indices", EvaluateOffsetsToIndices},
    {"prims._low_memory_max_pool_with_offsets", EvaluateMaximumPoolWithOffsets},
};

}  // namespace

std::span<const OpDefinition> PoolingOps() {
  return kPoolingOps;
}

}  // namespace strata::prove
