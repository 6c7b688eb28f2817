#include "runtime/plan/layouts.h"

#include <algorithm>
#include <span>
#include <utility>

namespace strata {
namespace {

/// Those of `known` that `dim` mentions are added to `found`.
void FindDataSizes(const Module& module, DimId dim, const UnbackedSizes& known,
                   UnbackedSizes& found) {
  if (module.dims().kind(dim) == DimKind::kSymbol) {
    const auto reader = known.find(module.dims().name(dim));
    if (reader != known.end()) found.insert(*reader);
  }
  for (const DimId operand : module.dims().operands(dim))
    FindDataSizes(module, operand, known, found);
}

/// `number_at(sizes)` as a function of the data-dependent sizes; none unless it is a sum of
/// multiples of them.
template <class Fn>
std::optional<SizeForm> FormOf(const UnbackedSizes& unbacked_sizes, SymbolSizes sizes,
                               Fn&& number_at) {
  for (const auto& [symbol, slot] : unbacked_sizes)
    sizes[symbol] = 0;
  const std::optional<int64_t> constant = number_at(sizes);
  if (!constant) return std::nullopt;
  SizeForm form{.constant = *constant};
  int64_t expected = form.constant, probe = 2;
  SymbolSizes all = sizes;
  for (const auto& [symbol, slot] : unbacked_sizes) {
    sizes[symbol] = 1;
    const std::optional<int64_t> with_one = number_at(sizes);
    sizes[symbol] = 0;
    if (!with_one) return std::nullopt;
    if (*with_one != form.constant) form.factors[slot.index] = *with_one - form.constant;
    all[symbol] = ++probe;
    expected += probe * (*with_one - form.constant);
  }
  return number_at(all) == expected ? std::optional(form) : std::nullopt;
}

bool IsTensor(const Module& module, TypeId type) {
  return type.valid() && module.types()[type].kind == TypeKind::kTensor;
}

}  // namespace

std::optional<PlanLayout> LayoutOf(const Module& module, TypeId id, const SymbolSizes& known) {
  if (!IsTensor(module, id) || !module.types()[id].has_strides) return std::nullopt;
  const Type& type = module.types()[id];
  PlanLayout layout{.dtype = type.dtype, .sizes = {}, .strides = {}, .offset = 0};
  auto sizes = NumbersOf(module, type.sizes, known);
  auto strides = NumbersOf(module, type.strides, known);
  if (!sizes || !strides || ByteSize(type.dtype) == 0) return std::nullopt;
  layout.sizes = std::move(sizes).value();
  layout.strides = std::move(strides).value();
  if (type.dim.valid()) {
    const auto offset = NumberOf(module, type.dim, known);
    if (!offset) return std::nullopt;
    layout.offset = *offset;
  }
  return layout;
}

std::optional<DynamicLayout> DynamicLayoutOf(const Module& module, TypeId id,
                                             const SymbolSizes& known,
                                             const UnbackedSizes& unbacked_sizes) {
  if (!IsTensor(module, id)) return std::nullopt;
  const Type& type = module.types()[id];
  UnbackedSizes mentioned;
  for (const DimId dim : type.sizes)
    FindDataSizes(module, dim, unbacked_sizes, mentioned);
  if (mentioned.empty() || !type.has_strides) return std::nullopt;
  DynamicLayout open{.dtype = type.dtype, .sizes = {}, .strides = {}, .bytes = {}};
  const auto add = [&](const std::vector<DimId>& dims, std::vector<SizeForm>& forms) {
    return std::ranges::all_of(dims, [&](DimId dim) {
      const auto form =
          FormOf(mentioned, known, [&](const SymbolSizes& sizes) -> std::optional<int64_t> {
            const auto number = NumberOf(module, dim, sizes);
            return number ? std::optional(*number) : std::nullopt;
          });
      if (form) forms.push_back(*form);
      return form.has_value();
    });
  };
  const auto bytes =
      FormOf(mentioned, known, [&](const SymbolSizes& sizes) -> std::optional<int64_t> {
        PlanLayout layout{.dtype = type.dtype, .sizes = {}, .strides = {}, .offset = 0};
        auto numbers = NumbersOf(module, type.sizes, sizes);
        auto strides = NumbersOf(module, type.strides, sizes);
        if (!numbers || !strides) return std::nullopt;
        layout.sizes = std::move(numbers).value();
        layout.strides = std::move(strides).value();
        return layout.storage_bytes();
      });
  if (!bytes || !add(type.sizes, open.sizes) || !add(type.strides, open.strides))
    return std::nullopt;
  open.bytes = *bytes;
  return open;
}

UnbackedSizes UnbackedSizesInside(const Graph& graph, NodeId fused, const Graph& body,
                                  const UnbackedSizes& unbacked_sizes) {
  const Module& module = graph.module();
  const DimTable& dims = module.dims();
  UnbackedSizes inside;
  const std::vector<NodeId> placeholders = body.placeholders();
  const std::span<const Arg> args = graph.args(fused).subspan(1);
  for (size_t i = 0; i < std::min(args.size(), placeholders.size()); ++i) {
    const TypeId inner = body.value(body.result(placeholders[i])).type;
    const TypeId outer = graph.value(args[i].value()).type;
    if (!inner.valid() || !outer.valid()) continue;
    const std::vector<DimId>& inner_dims = module.types()[inner].sizes;
    const std::vector<DimId>& outer_dims = module.types()[outer].sizes;
    for (size_t d = 0; d < std::min(inner_dims.size(), outer_dims.size()); ++d) {
      if (dims.kind(inner_dims[d]) != DimKind::kSymbol ||
          dims.kind(outer_dims[d]) != DimKind::kSymbol) {
        continue;
      }
      const auto known = unbacked_sizes.find(dims.name(outer_dims[d]));
      if (known != unbacked_sizes.end()) inside.emplace(dims.name(inner_dims[d]), known->second);
    }
  }
  return inside;
}

std::optional<std::vector<SizeForm>> DynamicNumbersOf(const Kernel& kernel,
                                                      const UnbackedSizes& inside) {
  std::vector<SizeForm> numbers;
  for (const SizeForm& form : kernel.dynamic_forms) {
    SizeForm& number = numbers.emplace_back();
    number.constant = form.constant;
    for (const auto& [index, factor] : form.factors) {
      const auto known = inside.find(kernel.unbacked_symbols[static_cast<size_t>(index)]);
      if (known == inside.end()) return std::nullopt;
      number.factors[known->second.index] += factor;
    }
  }
  return numbers;
}

}  // namespace strata
