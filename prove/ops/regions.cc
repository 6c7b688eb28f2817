#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "prove/ops/elementwise.h"
#include "prove/ops/tables.h"

namespace strata::prove {
namespace {

/// What a view operator returns for `target` in the place of its first argument.
Result<Tensor> RegionOf(const Tensor& target, std::string_view op, std::vector<Argument> where) {
  where.insert(where.begin(), Argument{target});
  Call view(op, std::move(where), {}, 1);
  STRATA_TRY(const Values values, FindDefinition(op)->evaluate(view));
  return std::get<Tensor>(values[0]);
}

/// The arguments from `position` on, by which a view operator finds its region.
std::vector<Argument> ArgumentsFrom(Call& call, size_t position) {
  const auto args = call.args();
  return {args.begin() + static_cast<std::ptrdiff_t>(std::min(position, args.size())), args.end()};
}

Status WriteRegion(const Tensor& region, const Tensor& source) {
  STRATA_TRY(const Tensor elements, ConvertTo(source, region.domain()).Expand(region.sizes()));
  region.Write(elements.Read());
  return Ok();
}

Result<Values> ScatteredBy(Call& call, std::string_view op) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  STRATA_TRY(const Tensor source, call.TensorAt(1, "src"));
  Tensor result = a.Copy();
  STRATA_TRY(const Tensor region, RegionOf(result, op, ArgumentsFrom(call, 2)));
  STRATA_RETURN_IF_ERROR(WriteRegion(region, source));
  return Values{std::move(result)};
}

/// select_scatter(self, src, dim, index)
Result<Values> EvaluateSelectScatter(Call& call) {
  return ScatteredBy(call, "aten.select.int");
}

/// slice_scatter(self, src, dim, start, end, step)
Result<Values> EvaluateSliceScatter(Call& call) {
  return ScatteredBy(call, "aten.slice.Tensor");
}

/// select_backward(grad_output, input_sizes, dim, index)
Result<Values> EvaluateSelectBackward(Call& call) {
  STRATA_TRY(const Tensor gradient, call.TensorAt(0));
  const std::optional<Sizes> sizes = call.IntegersAt(1, "input_sizes");
  if (!sizes) return Error(ErrorCode::kInvalid, "no sizes");
  Tensor result(gradient.domain(), *sizes);
  STRATA_TRY(const Tensor region, RegionOf(result, "aten.select.int", ArgumentsFrom(call, 2)));
  STRATA_RETURN_IF_ERROR(WriteRegion(region, gradient));
  return Values{std::move(result)};
}

/// repeat(self, repeats)
Result<Values> EvaluateRepeat(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const std::optional<Sizes> repeats = call.IntegersAt(1, "repeats");
  if (!repeats || std::ssize(*repeats) < a.dim())
    return Error(ErrorCode::kInvalid, "fewer numbers than dimensions");
  const size_t more = repeats->size() - a.sizes().size();
  Sizes single, repeated, sizes;
  for (size_t dim = 0; dim < repeats->size(); ++dim) {
    const int64_t size = dim < more ? 1 : a.sizes()[dim - more];
    single.insert(single.end(), {1, size});
    repeated.insert(repeated.end(), {(*repeats)[dim], size});
    sizes.push_back((*repeats)[dim] * size);
  }
  STRATA_TRY(const Tensor all, a.Reshape(single).Expand(repeated));
  return Values{all.Copy().Reshape(std::move(sizes))};
}

/// roll(self, shifts, dims)
Result<Values> EvaluateRoll(Call& call) {
  STRATA_TRY(const Tensor a, call.TensorAt(0));
  const std::optional<Sizes> shifts = call.IntegersAt(1, "shifts"),
                             dims = call.IntegersAt(2, "dims");
  if (!shifts) return Error(ErrorCode::kInvalid, "no shifts");
  const bool is_flat = !dims || dims->empty();
  Tensor rolled = is_flat ? a.Reshape({a.numel()}) : a;
  for (size_t i = 0; i < shifts->size(); ++i) {
    int64_t dim = is_flat ? 0 : dims->at(i);
    if (dim < 0) dim += a.dim();
    const int64_t size = std::max<int64_t>(rolled.size(dim), 1);
    const int64_t first = ((*shifts)[i] % size + size) % size;
    Tensor next(rolled.domain(), rolled.sizes());
    for (const auto& [to, from, end] : {std::array{int64_t{0}, size - first, size},
                                        std::array{first, int64_t{0}, size - first}}) {
      STRATA_TRY(const Tensor source, RegionOf(rolled, "aten.slice.Tensor",
                                               {Argument{dim}, Argument{from}, Argument{end}}));
      STRATA_TRY(const Tensor target,
                 RegionOf(next, "aten.slice.Tensor",
                          {Argument{dim}, Argument{to}, Argument{to + end - from}}));
      STRATA_RETURN_IF_ERROR(WriteRegion(target, source));
    }
    rolled = std::move(next);
  }
  return Values{rolled.Reshape(a.sizes())};
}

constexpr OpDefinition kRegionsOps[] = {
    {"aten.repeat", EvaluateRepeat},
    {"aten.roll", EvaluateRoll},
    {"aten.select_backward", EvaluateSelectBackward},
    {"aten.select_scatter", EvaluateSelectScatter},
    {"aten.slice_scatter", EvaluateSliceScatter},
};

}  // namespace

std::span<const OpDefinition> RegionOps() {
  return kRegionsOps;
}

}  // namespace strata::prove
