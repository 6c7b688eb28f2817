#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "ir/infer/infer_rules.h"

namespace strata {
namespace {

using Types = std::vector<Type>;
using Sizes = std::vector<DimId>;

/// One size may be -1: what the others leave.
Types View(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  auto sizes = call.Sizes(1, "size");
  if (!sizes) sizes = call.Sizes(1, "shape");
  if (x == nullptr || !sizes) return {};
  Sizes known = *sizes;
  std::erase_if(known, [&](DimId size) { return call.dims().AsConst(size) == -1; });
  for (DimId& size : *sizes)
    if (call.dims().AsConst(size) == -1)
      size = call.dims().FloorDiv(call.Product(x->sizes), call.Product(known));
  return {call.Like(*x, *sizes)};
}

Types Permute(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  if (x == nullptr) return {};
  Sizes sizes;
  for (const size_t dim : call.DimsOf(1, "dims", x->sizes.size()))
    sizes.push_back(x->sizes[dim]);
  return sizes.size() == x->sizes.size() ? Types{call.Like(*x, sizes)} : Types();
}

Types Swap(const InferredCall& call, size_t a, size_t b) {
  const Type* x = call.Tensor(0);
  if (x == nullptr) return {};
  Sizes sizes = x->sizes;
  if (std::max(a, b) < sizes.size()) std::swap(sizes[a], sizes[b]);
  return {call.Like(*x, sizes)};
}
Types Turn(const InferredCall& call) {
  return Swap(call, 0, 1);
}
Types Transpose(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  if (x == nullptr) return {};
  const auto a = call.DimOf(1, "dim0", x->sizes.size());
  const auto b = call.DimOf(2, "dim1", x->sizes.size());
  return a && b ? Swap(call, *a, *b) : Types();
}

Types Unsqueeze(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  const auto dim = x == nullptr ? std::nullopt : call.DimOf(1, "dim", x->sizes.size() + 1);
  if (!dim) return {};
  Sizes sizes = x->sizes;
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(*dim), call.dims().Const(1));
  return {call.Like(*x, sizes)};
}
Types Squeeze(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  if (x == nullptr) return {};
  const std::vector<size_t> dims = call.DimsOf(1, "dim", x->sizes.size());
  Sizes sizes;
  for (size_t dim = 0; dim < x->sizes.size(); ++dim)
    if (std::ranges::count(dims, dim) == 0 || call.dims().AsConst(x->sizes[dim]) != 1)
      sizes.push_back(x->sizes[dim]);
  return {call.Like(*x, sizes)};
}

Types Expand(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  auto sizes = call.Sizes(1, "size");
  if (x == nullptr || !sizes || sizes->size() < x->sizes.size()) return {};
  const size_t added = sizes->size() - x->sizes.size();
  for (size_t dim = added; dim < sizes->size(); ++dim)
    if (call.dims().AsConst((*sizes)[dim]) == -1) (*sizes)[dim] = x->sizes[dim - added];
  return {call.Like(*x, *sizes)};
}

Types Select(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  const auto dim = x == nullptr ? std::nullopt : call.DimOf(1, "dim", x->sizes.size());
  if (!dim) return {};
  Sizes sizes = x->sizes;
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(*dim));
  return {call.Like(*x, sizes)};
}

Types Slice(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  const auto dim = x == nullptr ? std::nullopt : call.DimOf(1, "dim", x->sizes.size());
  if (!dim) return {};
  Sizes sizes = x->sizes;
  const int64_t start = call.Int(2, "start").value_or(0);
  const int64_t end = call.Int(3, "end").value_or(std::numeric_limits<int64_t>::max());
  const int64_t step = call.Int(4, "step").value_or(1);
  const auto size = call.dims().AsConst(sizes[*dim]);
  const bool is_whole = start == 0 && step == 1 && end == std::numeric_limits<int64_t>::max();
  if (is_whole) return {call.Like(*x, sizes)};
  if (!size && step == 1 && start >= 0 && end < 0) {  // all but the last ones
    sizes[*dim] = call.dims().Add(sizes[*dim], call.dims().Const(end - start));
    return {call.Like(*x, sizes)};
  }
  if (!size || step < 1) return {};
  const auto place = [&](int64_t at) {
    return std::clamp(at < 0 ? at + *size : at, int64_t{0}, *size);
  };
  const int64_t count = std::max<int64_t>(place(end) - place(start), 0);
  sizes[*dim] = call.dims().Const((count + step - 1) / step);
  return {call.Like(*x, sizes)};
}

/// Parts of one size, of which the last may be smaller.
Types Split(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  if (x == nullptr || x->sizes.empty()) return {};
  const size_t dim = call.DimOf(2, "dim", x->sizes.size()).value_or(0);
  const auto whole = call.dims().AsConst(x->sizes[dim]);
  const auto part = call.Int(1, "split_size");
  constexpr int64_t kMaxParts = 65'536;
  if (!whole || !part || *part < 1 || *whole / *part > kMaxParts) return {};
  Types types;
  for (int64_t at = 0; at < *whole; at += *part) {
    Sizes sizes = x->sizes;
    sizes[dim] = call.dims().Const(std::min(*part, *whole - at));
    types.push_back(call.Like(*x, sizes));
  }
  return types;
}
Types SplitWithSizes(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  const auto parts = call.Sizes(1, "split_sizes");
  if (x == nullptr || x->sizes.empty() || !parts) return {};
  const size_t dim = call.DimOf(2, "dim", x->sizes.size()).value_or(0);
  Types types;
  for (const DimId part : *parts) {
    Sizes sizes = x->sizes;
    sizes[dim] = part;
    types.push_back(call.Like(*x, sizes));
  }
  return types;
}

Types Concatenate(const InferredCall& call) {
  const std::vector<const Type*> parts = call.Tensors(0);
  if (parts.empty() || std::ranges::count(parts, nullptr) != 0) return {};
  const size_t dim = call.DimOf(1, "dim", parts[0]->sizes.size()).value_or(0);
  Sizes sizes = parts[0]->sizes;
  if (dim >= sizes.size()) return {};
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i]->sizes.size() != sizes.size()) return {};
    sizes[dim] = call.dims().Add(sizes[dim], parts[i]->sizes[dim]);
  }
  return {call.Like(*parts[0], sizes)};
}
Types Stack(const InferredCall& call) {
  const std::vector<const Type*> parts = call.Tensors(0);
  if (parts.empty() || parts[0] == nullptr) return {};
  Sizes sizes = parts[0]->sizes;
  const size_t dim = call.DimOf(1, "dim", sizes.size() + 1).value_or(0);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim),
               call.dims().Const(static_cast<int64_t>(parts.size())));
  return {call.Like(*parts[0], sizes)};
}

/// Two numbers for each dimension, the last one first: what is added before and after.
Types Pad(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  const auto added = call.Sizes(1, "pad");
  if (x == nullptr || !added || added->size() % 2 != 0 || added->size() / 2 > x->sizes.size())
    return {};
  Sizes sizes = x->sizes;
  for (size_t i = 0; i < added->size() / 2; ++i) {
    DimId& size = sizes[sizes.size() - 1 - i];
    size = call.dims().Add(size, call.dims().Add((*added)[2 * i], (*added)[2 * i + 1]));
  }
  return {call.Like(*x, sizes)};
}

Types AsComplex(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  if (x == nullptr || x->sizes.empty()) return {};
  Sizes sizes = x->sizes;
  sizes.pop_back();
  return {call.Like(*x, sizes, x->dtype == DType::kF64 ? DType::kC128 : DType::kC64)};
}
Types AsReal(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  if (x == nullptr) return {};
  Sizes sizes = x->sizes;
  sizes.push_back(call.dims().Const(2));
  return {call.Like(*x, sizes, x->dtype == DType::kC128 ? DType::kF64 : DType::kF32)};
}

}  // namespace

InferRule ViewRuleOf(std::string_view base) {
  static const std::unordered_map<std::string_view, InferRule> rules = {
      {"_unsafe_view", View},
      {"cat", Concatenate},
      {"constant_pad_nd", Pad},
      {"expand", Expand},
      {"permute", Permute},
      {"reshape", View},
      {"select", Select},
      {"slice", Slice},
      {"split", Split},
      {"split_with_sizes", SplitWithSizes},
      {"squeeze", Squeeze},
      {"stack", Stack},
      {"t", Turn},
      {"transpose", Transpose},
      {"unsqueeze", Unsqueeze},
      {"view", View},
      {"view_as_complex", AsComplex},
      {"view_as_real", AsReal},
  };
  const auto found = rules.find(base);
  return found == rules.end() ? nullptr : found->second;
}

}  // namespace strata
