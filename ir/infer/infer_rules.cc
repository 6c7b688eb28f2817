#include "ir/infer/infer_rules.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <unordered_map>

#include "ir/ops.h"

namespace strata {
namespace {

using Types = std::vector<Type>;
using Sizes = std::vector<DimId>;

bool IsFloat(DType dtype) {
  constexpr std::array kFloats = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64};
  return std::ranges::count(kFloats, dtype) != 0;
}
bool IsComplex(DType dtype) {
  return dtype == DType::kC32 || dtype == DType::kC64 || dtype == DType::kC128;
}

/// Bool, integers, floats, complex numbers.
int CategoryOf(DType dtype) {
  return IsComplex(dtype) ? 3 : IsFloat(dtype) ? 2 : dtype == DType::kBool ? 0 : 1;
}

DType Promote(DType a, DType b) {
  if (a == b) return a;
  if (CategoryOf(a) != CategoryOf(b)) return CategoryOf(a) > CategoryOf(b) ? a : b;
  if (ByteSize(a) != ByteSize(b)) return ByteSize(a) > ByteSize(b) ? a : b;
  return IsFloat(a) ? DType::kF32 : a;  // bf16 and f16; u8 and i8 do not meet in models
}

DimId Wider(DimTable& dims, DimId a, DimId b) {
  return dims.AsConst(a) == 1 ? b : a;
}

Sizes Broadcast(DimTable& dims, const Sizes& a, const Sizes& b) {
  Sizes sizes = a.size() >= b.size() ? a : b;
  const Sizes& shorter = a.size() >= b.size() ? b : a;
  const size_t skipped = sizes.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i)
    sizes[skipped + i] = Wider(dims, sizes[skipped + i], shorter[i]);
  return sizes;
}

// --- Elementwise

Types SameAsFirst(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  return x == nullptr ? Types() : Types{call.Like(*x, x->sizes)};
}

/// Of the positional tensors from `first` on. Tensors without dimensions count less.
Types BroadcastFrom(const InferredCall& call, size_t first, bool to_bool) {
  const Type* like = nullptr;
  Sizes sizes;
  DType all = DType::kUnknown, shaped = DType::kUnknown;
  bool has_float = false;
  for (size_t i = 0; i < call.graph().args(call.node()).size(); ++i) {
    const Arg* arg = call.FindArg(i, "");
    has_float = has_float || (arg != nullptr && arg->kind() == ArgKind::kFloat);
    const Type* type = call.Tensor(i);
    if (type == nullptr) {
      if (arg != nullptr && arg->is_value() && !call.Size(*arg)) return {};
      continue;
    }
    if (like == nullptr || type->sizes.size() > like->sizes.size()) like = type;
    sizes = Broadcast(call.dims(), sizes, type->sizes);
    if (i < first) continue;
    DType& dtype = type->sizes.empty() ? all : shaped;
    dtype = dtype == DType::kUnknown ? type->dtype : Promote(dtype, type->dtype);
  }
  if (like == nullptr) return {};
  if (shaped == DType::kUnknown) shaped = all;
  if (all != DType::kUnknown && CategoryOf(all) > CategoryOf(shaped)) shaped = all;
  if (has_float && CategoryOf(shaped) < 2) shaped = DType::kF32;
  return {call.Like(*like, sizes, to_bool ? DType::kBool : shaped)};
}
Types Elementwise(const InferredCall& call) {
  return BroadcastFrom(call, 0, /*to_bool=*/false);
}
Types Compare(const InferredCall& call) {
  return BroadcastFrom(call, 0, /*to_bool=*/true);
}
Types Where(const InferredCall& call) {
  return BroadcastFrom(call, 1, /*to_bool=*/false);
}
Types Divide(const InferredCall& call) {
  Types types = Elementwise(call);
  const bool is_whole = call.FindArg(3, "rounding_mode") != nullptr;
  if (!types.empty() && !is_whole && CategoryOf(types[0].dtype) < 2) types[0].dtype = DType::kF32;
  return types;
}

Types Convert(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  const auto dtype = call.Element(1, "dtype");
  if (x == nullptr) return {};
  return {call.Like(*x, x->sizes, dtype.value_or(x->dtype))};
}

/// The position of an argument that is given by name.
constexpr size_t kNamedOnly = std::numeric_limits<size_t>::max();

Types Fill(const InferredCall& call) {
  const auto sizes = call.Sizes(0, "size");
  if (!sizes) return {};
  Type like;
  if (const Arg* device = call.FindArg(kNamedOnly, "device");
      device != nullptr && device->kind() == ArgKind::kDevice)
    like.device = device->str();
  return {call.Like(like, *sizes, call.Element(kNamedOnly, "dtype").value_or(DType::kF32))};
}

// --- Products

Types Matmul(const InferredCall& call) {
  const Type *a = call.Tensor(0), *b = call.Tensor(1);
  if (a == nullptr || b == nullptr || a->sizes.size() < 2 || b->sizes.size() < 2) return {};
  Sizes sizes = a->sizes;
  sizes.back() = b->sizes.back();
  return {call.Like(*a, sizes)};
}

Types AddMatmul(const InferredCall& call) {
  const Type *a = call.Tensor(1), *b = call.Tensor(2);
  if (a == nullptr || b == nullptr || a->sizes.size() != 2 || b->sizes.size() != 2) return {};
  return {call.Like(*a, {a->sizes[0], b->sizes[1]})};
}

/// Rows of each group with its matrix, or the gradients of the matrices.
Types GroupedMatmul(const InferredCall& call) {
  const Type *a = call.Tensor(0), *b = call.Tensor(1), *ends = call.Tensor(2);
  if (a == nullptr || b == nullptr || ends == nullptr) return {};
  const size_t rows = a->sizes.size() == 3 ? 1 : 0;
  const DimId m = a->sizes[rows], n = b->sizes.back();
  const bool is_of_matrices = a->sizes.size() == 2 && b->sizes.size() == 2;
  return {call.Like(*a, is_of_matrices ? Sizes{ends->sizes[0], m, n} : Sizes{m, n})};
}

/// The result, and the logarithms of the sums of each row.
Types Attention(const InferredCall& call) {
  const Type *q = call.Tensor(0), *v = call.Tensor(2);
  if (q == nullptr || v == nullptr || q->sizes.size() != 4 || v->sizes.size() != 4) return {};
  Sizes sizes = q->sizes;
  sizes.back() = v->sizes.back();
  Types types = {call.Like(*q, sizes)};
  sizes.pop_back();
  types.push_back(call.Like(*q, sizes, DType::kF32));
  return types;
}
Types AttentionGradients(const InferredCall& call, size_t q) {
  Types types;
  for (size_t i = q; i < q + 3; ++i) {
    const Type* operand = call.Tensor(i);
    if (operand == nullptr) return {};
    types.push_back(call.Like(*operand, operand->sizes));
  }
  return types;
}
Types SdpaBackward(const InferredCall& call) {
  return AttentionGradients(call, 1);
}
Types FlexBackward(const InferredCall& call) {
  return AttentionGradients(call, 0);
}

// --- Reductions

Types Reduce(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  if (x == nullptr) return {};
  const std::vector<size_t> reduced = call.DimsOf(1, "dim", x->sizes.size());
  const bool keeps = call.Flag(2, "keepdim");
  Sizes sizes;
  for (size_t dim = 0; dim < x->sizes.size(); ++dim) {
    const bool is_reduced = reduced.empty() || std::ranges::count(reduced, dim) != 0;
    if (!is_reduced) sizes.push_back(x->sizes[dim]);
    if (is_reduced && keeps) sizes.push_back(call.dims().Const(1));
  }
  return {call.Like(*x, sizes, call.Element(3, "dtype").value_or(x->dtype))};
}
Types Sum(const InferredCall& call) {
  Types types = Reduce(call);
  if (!types.empty() && CategoryOf(types[0].dtype) < 2) types[0].dtype = DType::kI64;
  return types;
}

/// Values and their places.
Types Sort(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  if (x == nullptr) return {};
  return {call.Like(*x, x->sizes), call.Like(*x, x->sizes, DType::kI64)};
}
Types TopK(const InferredCall& call) {
  Types types = Sort(call);
  const auto k = call.Int(1, "k");
  if (types.empty() || !k) return {};
  const size_t rank = types[0].sizes.size();
  const size_t dim = call.DimOf(2, "dim", rank).value_or(rank - 1);
  for (Type& type : types) {
    Sizes sizes = type.sizes;
    sizes[dim] = call.dims().Const(*k);
    type = call.Like(type, sizes);
  }
  return types;
}
Types Histogram(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  if (x == nullptr) return {};
  return {call.Like(*x, {call.dims().Const(call.Int(1, "bins").value_or(100))})};
}

// --- Indices

/// The last dimension of the weight for each index.
Types Embedding(const InferredCall& call) {
  const Type *weight = call.Tensor(0), *indices = call.Tensor(1);
  if (weight == nullptr || indices == nullptr || weight->sizes.size() != 2) return {};
  Sizes sizes = indices->sizes;
  sizes.push_back(weight->sizes[1]);
  return {call.Like(*weight, sizes)};
}
Types EmbeddingGradient(const InferredCall& call) {
  const Type* gradient = call.Tensor(0);
  const auto rows = call.Int(2, "num_weights");
  if (gradient == nullptr || !rows || gradient->sizes.empty()) return {};
  return {call.Like(*gradient, {call.dims().Const(*rows), gradient->sizes.back()})};
}

Types Index(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  const std::vector<const Type*> indices = call.Tensors(1);
  if (x == nullptr || indices.empty() || indices.size() > x->sizes.size()) return {};
  Sizes before, of_indices, after;
  for (size_t dim = 0; dim < x->sizes.size(); ++dim) {
    const Type* index = dim < indices.size() ? indices[dim] : nullptr;
    if (index != nullptr && index->dtype == DType::kBool) return {};  // as many as are true
    if (index != nullptr) {
      of_indices = Broadcast(call.dims(), of_indices, index->sizes);
    } else {
      (of_indices.empty() ? before : after).push_back(x->sizes[dim]);
    }
  }
  before.insert(before.end(), of_indices.begin(), of_indices.end());
  before.insert(before.end(), after.begin(), after.end());
  return {call.Like(*x, before)};
}
Types Gather(const InferredCall& call) {
  const Type *x = call.Tensor(0), *indices = call.Tensor(2);
  return x == nullptr || indices == nullptr ? Types() : Types{call.Like(*x, indices->sizes)};
}

// --- Collectives

Types AllGather(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  const auto ranks = call.Int(1, "group_size");
  if (x == nullptr || x->sizes.empty() || !ranks) return {};
  Sizes sizes = x->sizes;
  sizes[0] = call.dims().Mul(sizes[0], call.dims().Const(*ranks));
  return {call.Like(*x, sizes)};
}
Types ReduceScatter(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  const auto ranks = call.Int(2, "group_size");
  if (x == nullptr || x->sizes.empty() || !ranks || *ranks < 1) return {};
  Sizes sizes = x->sizes;
  sizes[0] = call.dims().FloorDiv(sizes[0], call.dims().Const(*ranks));
  return {call.Like(*x, sizes)};
}
Types AllToAll(const InferredCall& call) {
  const Type* x = call.Tensor(0);
  const auto parts = call.Sizes(1, "output_split_sizes");
  if (x == nullptr || x->sizes.empty()) return {};
  Sizes sizes = x->sizes;
  if (parts) {
    sizes[0] = call.dims().Const(0);
    for (const DimId part : *parts)
      sizes[0] = call.dims().Add(sizes[0], part);
  }
  return {call.Like(*x, sizes)};
}

const std::unordered_map<std::string_view, InferRule>& Rules() {
  static const auto rules = [] {
    std::unordered_map<std::string_view, InferRule> all;
    const auto add = [&](InferRule rule, std::initializer_list<std::string_view> names) {
      for (const std::string_view name : names)
        all.emplace(name, rule);
    };
    add(SameAsFirst, {"_conj",
                      "_softmax",
                      "_log_softmax",
                      "_softmax_backward_data",
                      "abs",
                      "alias",
                      "all_reduce",
                      "clamp",
                      "clamp_min",
                      "clone",
                      "copy_",
                      "cos",
                      "cumsum",
                      "detach",
                      "device_put",
                      "empty_like",
                      "exp",
                      "full_like",
                      "gelu",
                      "index_put",
                      "log",
                      "masked_fill",
                      "neg",
                      "ones_like",
                      "reciprocal",
                      "relu",
                      "rsqrt",
                      "scatter",
                      "scatter_add",
                      "sigmoid",
                      "silu",
                      "silu_backward",
                      "slice_scatter",
                      "sin",
                      "sqrt",
                      "tanh",
                      "threshold_backward",
                      "tril",
                      "triu",
                      "wait_tensor",
                      "zeros_like"});
    add(Elementwise, {"add", "bitwise_and", "bitwise_or", "fma", "maximum", "minimum", "mul", "pow",
                      "remainder", "rsub", "sub"});
    add(Compare, {"eq", "ge", "gt", "le", "logical_and", "logical_not", "logical_or", "lt", "ne"});
    add(Where, {"where"});
    add(Divide, {"div"});
    add(Convert, {"convert_element_type", "_to_copy"});
    add(Fill, {"empty", "full", "ones", "zeros"});
    add(Matmul, {"mm", "bmm"});
    add(AddMatmul, {"addmm"});
    add(GroupedMatmul, {"_grouped_mm"});
    add(Attention, {"_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention",
                    "_scaled_dot_product_efficient_attention",
                    "_scaled_dot_product_flash_attention_for_cpu", "flex_attention"});
    add(SdpaBackward, {"_scaled_dot_product_cudnn_attention_backward",
                       "_scaled_dot_product_flash_attention_backward",
                       "_scaled_dot_product_efficient_attention_backward",
                       "_scaled_dot_product_flash_attention_for_cpu_backward"});
    add(FlexBackward, {"flex_attention_backward"});
    add(Reduce, {"amax", "amin", "mean"});
    add(Sum, {"sum"});
    add(Sort, {"sort"});
    add(TopK, {"topk"});
    add(Histogram, {"histc"});
    add(Embedding, {"embedding"});
    add(EmbeddingGradient, {"embedding_dense_backward"});
    add(Index, {"index"});
    add(Gather, {"gather"});
    add(AllGather, {"all_gather_into_tensor"});
    add(ReduceScatter, {"reduce_scatter_tensor"});
    add(AllToAll, {"all_to_all_single"});
    return all;
  }();
  return rules;
}

}  // namespace

InferRule InferRuleOf(std::string_view op) {
  if (const InferRule number = NumberRuleOf(op)) return number;
  const bool is_operator = op.starts_with("aten.") || op.starts_with("prims.") ||
                           op.starts_with("_c10d_functional.") || op.starts_with("higher_order.");
  if (!is_operator) return nullptr;
  const std::string_view base = BaseName(op);
  if (const InferRule view = ViewRuleOf(base)) return view;
  const auto found = Rules().find(base);
  return found == Rules().end() ? nullptr : found->second;
}

}  // namespace strata
