#include "runtime/aten/prims.h"

#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <torch/library.h>

namespace strata {
namespace {

using at::IntArrayRef;
using at::Tensor;

Tensor Iota(int64_t length, int64_t start, int64_t step, at::ScalarType dtype, at::Device device,
            bool /*requires_grad*/) {
  const auto options = at::TensorOptions().device(device).dtype(dtype);
  return at::arange(length, options.dtype(at::kLong)).mul(step).add(start).to(dtype);
}

Tensor ConvertElementType(const Tensor& a, at::ScalarType dtype) {
  return at::_to_copy(a, a.options().dtype(dtype));
}

Tensor DevicePut(const Tensor& a, at::Device device, bool non_blocking) {
  return at::_to_copy(a, a.options().device(device), non_blocking);
}

Tensor Fma(const Tensor& a, const Tensor& b, const Tensor& c) {
  return at::add(at::mul(a, b), c);
}

Tensor Rev(const Tensor& a, IntArrayRef dims) {
  return at::flip(a, dims);
}

Tensor ViewOf(const Tensor& a) {
  return a.view(a.sizes());
}

/// Dimension i of `a` becomes dimension `dims[i]` of the result; the others are new.
Tensor BroadcastInDim(const Tensor& a, IntArrayRef shape, IntArrayRef dims) {
  Tensor spread = a;
  for (int64_t d = 0, next = 0; d < static_cast<int64_t>(shape.size()); ++d) {
    if (next < static_cast<int64_t>(dims.size()) && dims[static_cast<size_t>(next)] == d) {
      ++next;
    } else {
      spread = spread.unsqueeze(d);
    }
  }
  return spread.expand(shape);
}

Tensor InStrides(const Tensor& a, IntArrayRef strides) {
  Tensor copy = at::empty_strided(a.sizes(), strides, a.options());
  copy.copy_(a);
  return copy;
}

/// Always another tensor, because the schema says that the result is new.
Tensor ForceStrideOrder(const Tensor& a, IntArrayRef strides) {
  return InStrides(a, strides);
}

/// PyTorch calls the function of a prim twice and takes the second result: the first call is for
/// its type. Source: torch/_inductor/inductor_prims.py (make_prim), torch/_prims (_make_prim).
template <class Draw>
Tensor DrawTwice(const Draw& draw) {
  draw();
  return draw();
}

Tensor Seeds(int64_t count, at::Device device) {
  const auto options = at::TensorOptions().device(device).dtype(at::kLong);
  return DrawTwice(
      [&] { return at::randint(std::numeric_limits<int64_t>::max(), {count}, options); });
}

Tensor Seed(at::Device device) {
  return Seeds(1, device).squeeze(0);
}

Tensor LookupSeed(const Tensor& seeds, int64_t index) {
  return seeds.select(0, index).clone();
}

Tensor Random(IntArrayRef size, const Tensor& seed, std::string_view mode) {
  const auto options = seed.options().dtype(at::kFloat);
  TORCH_CHECK(mode == "rand" || mode == "randn", "inductor_random: unknown mode ", mode);
  return DrawTwice(
      [&] { return mode == "rand" ? at::rand(size, options) : at::randn(size, options); });
}

Tensor RandomIntegers(int64_t low, int64_t high, IntArrayRef size, const Tensor& seed) {
  return DrawTwice([&] { return at::randint(low, high, size, seed.options().dtype(at::kLong)); });
}

Tensor& UnsafeIndexPut(Tensor& self, const c10::List<std::optional<Tensor>>& indices,
                       const Tensor& values, bool accumulate) {
  return self.index_put_(indices, values, accumulate);
}

std::tuple<Tensor, Tensor> PrepareSoftmaxOnline(const Tensor& a, int64_t dim) {
  Tensor largest = at::amax(a, {dim}, /*keepdim=*/true);
  Tensor sum = at::sum(at::exp(at::sub(a, largest)), IntArrayRef{dim}, /*keepdim=*/true);
  return {std::move(largest), std::move(sum)};
}

/// For each place of the pooled dimension d, counted from the last `dims`: where its window begins.
Tensor WindowBegins(const Tensor& pooled, int64_t dims, int64_t d, int64_t stride,
                    int64_t padding) {
  std::vector<int64_t> shape(static_cast<size_t>(pooled.dim()), 1);
  const int64_t dim = pooled.dim() - dims + d;
  shape[static_cast<size_t>(dim)] = pooled.size(dim);
  const auto options = pooled.options().dtype(at::kLong);
  return at::arange(pooled.size(dim), options).view(shape).mul(stride).sub(padding);
}

/// The coordinates of row-major `indices` into `sizes`.
std::vector<Tensor> Unravel(Tensor indices, IntArrayRef sizes) {
  std::vector<Tensor> coordinates(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    coordinates[d] = d == 0 ? indices : at::remainder(indices, sizes[d]);
    indices = at::div(indices, sizes[d], "floor");
  }
  return coordinates;
}

Tensor Ravel(const std::vector<Tensor>& coordinates, IntArrayRef sizes) {
  Tensor indices = coordinates[0];
  for (size_t d = 1; d < coordinates.size(); ++d)
    indices = indices.mul(sizes[d]).add(coordinates[d]);
  return indices;
}

std::tuple<Tensor, Tensor> MaxPoolWithOffsets(const Tensor& self, IntArrayRef kernel,
                                              IntArrayRef stride, IntArrayRef padding,
                                              IntArrayRef dilation, bool ceil_mode) {
  auto [values, indices] =
      kernel.size() == 2
          ? at::max_pool2d_with_indices(self, kernel, stride, padding, dilation, ceil_mode)
          : at::max_pool3d_with_indices(self, kernel, stride, padding, dilation, ceil_mode);
  const auto dims = static_cast<int64_t>(kernel.size());
  std::vector<Tensor> places =
      Unravel(indices, self.sizes().slice(self.sizes().size() - kernel.size()));
  for (int64_t d = 0; d < dims; ++d) {
    const auto i = static_cast<size_t>(d);
    const Tensor begins = WindowBegins(indices, dims, d, stride[i], padding[i]);
    places[i] = at::div(at::sub(places[i], begins), dilation[i], "floor");
  }
  return {values, Ravel(places, kernel).to(at::kChar)};
}

Tensor MaxPoolOffsetsToIndices(const Tensor& offsets, IntArrayRef kernel, IntArrayRef input_size,
                               IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation) {
  const auto dims = static_cast<int64_t>(kernel.size());
  std::vector<Tensor> places = Unravel(offsets.to(at::kLong), kernel);
  for (int64_t d = 0; d < dims; ++d) {
    const auto i = static_cast<size_t>(d);
    const Tensor begins = WindowBegins(offsets, dims, d, stride[i], padding[i]);
    places[i] = places[i].mul(dilation[i]).add(begins);
  }
  return Ravel(places, input_size);
}

}  // namespace

void RegisterPrims() {
  static const torch::Library library = [] {
    torch::Library prims(torch::Library::FRAGMENT, "prims", std::nullopt, __FILE__, __LINE__);
    const auto add = [&](const char* schema, auto* kernel) {
      prims.def(schema, torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, kernel));
    };
    add("iota(int length, *, int start, int step, ScalarType dtype, Device device, "
        "bool requires_grad) -> Tensor",
        Iota);
    add("convert_element_type(Tensor a, ScalarType dtype) -> Tensor", ConvertElementType);
    add("device_put(Tensor a, Device device, bool non_blocking=False) -> Tensor", DevicePut);
    add("fma(Tensor a, Tensor b, Tensor c) -> Tensor", Fma);
    add("rev(Tensor a, int[] dims) -> Tensor", Rev);
    add("view_of(Tensor(a) a) -> Tensor(a)", ViewOf);
    add("broadcast_in_dim(Tensor(a) a, int[] shape, int[] broadcast_dimensions) -> Tensor(a)",
        BroadcastInDim);
    add("copy_strided(Tensor a, int[] stride) -> Tensor", InStrides);
    add("inductor_force_stride_order(Tensor input, int[] stride) -> Tensor", ForceStrideOrder);
    add("inductor_seed(Device device) -> Tensor", Seed);
    add("inductor_seeds(int count, Device device) -> Tensor", Seeds);
    add("inductor_lookup_seed(Tensor seeds, int index) -> Tensor", LookupSeed);
    add("inductor_random(int[] size, Tensor seed, str mode) -> Tensor", Random);
    add("inductor_randint(int low, int high, int[] size, Tensor seed) -> Tensor", RandomIntegers);
    add("_unsafe_index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, "
        "bool accumulate=False) -> Tensor(a!)",
        UnsafeIndexPut);
    add("prepare_softmax_online(Tensor a, int dim) -> (Tensor, Tensor)", PrepareSoftmaxOnline);
    add("_low_memory_max_pool_with_offsets(Tensor self, int[] kernel_size, int[] stride, "
        "int[] padding, int[] dilation, bool ceil_mode) -> (Tensor, Tensor)",
        MaxPoolWithOffsets);
    add("_low_memory_max_pool_offsets_to_indices(Tensor self, int[] kernel_size, "
        "int[] input_size, int[] stride, int[] padding, int[] dilation) -> Tensor",
        MaxPoolOffsetsToIndices);
    return prims;
  }();
}

}  // namespace strata
