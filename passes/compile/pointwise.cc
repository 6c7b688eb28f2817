#include "passes/compile/pointwise.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "ir/fused_op.h"
#include "ir/module.h"
#include "ir/ops.h"

namespace strata {
namespace {

using enum FusionKind;

// Sorted by operator. Formulas stand in runtime/codegen/formulas.cc.
// Exact is what IEEE arithmetic fixes, and sums over rows of floats, whose order on CPUs the source
// of ATen fixes for every ATEN_CPU_CAPABILITY (SumKernel.cpp). `rsqrt` is 1 / sqrt(x) there, with
// the processor's root; `sqrt` is a function of MKL, whose roots are not always the nearest
// numbers.
constexpr std::array kFusible = {
    FusibleOp{"aten._log_softmax.default", "log_softmax", kReduction, false},
    FusibleOp{"aten._log_softmax_backward_data.default", "log_softmax_backward", kReduction, false},
    FusibleOp{"aten._softmax.default", "softmax", kReduction, false},
    FusibleOp{"aten._softmax_backward_data.default", "softmax_backward", kReduction, false},
    FusibleOp{"aten._to_copy.default", "cast", kPointwise, true},
    FusibleOp{"aten._unsafe_view.default", "", kReshape, true},
    FusibleOp{"aten.abs.default", "abs", kPointwise, true},
    FusibleOp{"aten.add.Scalar", "add", kPointwise, true},
    FusibleOp{"aten.add.Tensor", "add", kPointwise, true},
    FusibleOp{"aten.add_.Scalar", "add", kPointwise, true},
    FusibleOp{"aten.add_.Tensor", "add", kPointwise, true},
    FusibleOp{"aten.addcdiv.default", "addcdiv", kPointwise, true},
    FusibleOp{"aten.addcdiv_.default", "addcdiv", kPointwise, true},
    FusibleOp{"aten.addcmul.default", "addcmul", kPointwise, true},
    FusibleOp{"aten.addcmul_.default", "addcmul", kPointwise, true},
    FusibleOp{"aten.amax.default", "max", kReduction, false},
    FusibleOp{"aten.clone.default", "copy", kPointwise, true},
    FusibleOp{"aten.div.Scalar", "div", kPointwise, true},
    FusibleOp{"aten.div.Tensor", "div", kPointwise, true},
    FusibleOp{"aten.div_.Scalar", "div", kPointwise, true},
    FusibleOp{"aten.div_.Tensor", "div", kPointwise, true},
    FusibleOp{"aten.exp.default", "exp", kPointwise, false},
    FusibleOp{"aten.expand.default", "", kReshape, true},
    FusibleOp{"aten.lerp.Scalar", "lerp", kPointwise, true},
    FusibleOp{"aten.lerp_.Scalar", "lerp", kPointwise, true},
    FusibleOp{"aten.mean.dim", "mean", kReduction, true},
    FusibleOp{"aten.mul.Scalar", "mul", kPointwise, true},
    FusibleOp{"aten.mul.Tensor", "mul", kPointwise, true},
    FusibleOp{"aten.mul_.Scalar", "mul", kPointwise, true},
    FusibleOp{"aten.mul_.Tensor", "mul", kPointwise, true},
    FusibleOp{"aten.neg.default", "neg", kPointwise, true},
    FusibleOp{"aten.pow.Tensor_Scalar", "pow", kPointwise, true},
    FusibleOp{"aten.reciprocal.default", "reciprocal", kPointwise, true},
    FusibleOp{"aten.relu.default", "relu", kPointwise, true},
    FusibleOp{"aten.reshape.default", "", kReshape, true},
    FusibleOp{"aten.rsqrt.default", "rsqrt", kPointwise, true},
    FusibleOp{"aten.sigmoid.default", "sigmoid", kPointwise, false},
    FusibleOp{"aten.sigmoid_backward.default", "sigmoid_backward", kPointwise, false},
    FusibleOp{"aten.silu.default", "silu", kPointwise, false},
    FusibleOp{"aten.silu_backward.default", "silu_backward", kPointwise, false},
    FusibleOp{"aten.sqrt.default", "sqrt", kPointwise, false},
    FusibleOp{"aten.sub.Scalar", "sub", kPointwise, true},
    FusibleOp{"aten.sub.Tensor", "sub", kPointwise, true},
    FusibleOp{"aten.sub_.Scalar", "sub", kPointwise, true},
    FusibleOp{"aten.sub_.Tensor", "sub", kPointwise, true},
    FusibleOp{"aten.sum.dim_IntList", "sum", kReduction, true},
    FusibleOp{"aten.tanh.default", "tanh", kPointwise, false},
    FusibleOp{"aten.unsqueeze.default", "", kReshape, true},
    FusibleOp{"aten.view.default", "", kReshape, true},
};
static_assert(std::ranges::is_sorted(kFusible, {}, &FusibleOp::op));

const Type* TypeOf(const Graph& graph, ValueId value) {
  const TypeId id = graph.value(value).type;
  if (!id.valid()) return nullptr;
  const Type& type = graph.module().types()[id];
  return type.kind == TypeKind::kTensor && type.has_strides ? &type : nullptr;
}

bool IsReal(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kBF16;
}

/// Sizes are known, if only when it runs, the dtype is one that kernels compute with.
bool CanCompute(const Graph& graph, ValueId value, std::span<const SymbolSizes> samples) {
  const Type* type = TypeOf(graph, value);
  return type != nullptr && IsReal(type->dtype) &&
         NumbersOf(graph.module(), type->sizes, samples[0]);
}

std::optional<double> NumberOf(const Arg& arg) {
  if (arg.kind() == ArgKind::kInt) return static_cast<double>(arg.as_int());
  if (arg.kind() == ArgKind::kFloat) return arg.as_float();
  return std::nullopt;
}

/// The last dimensions, all of them in order: `[2]` and `[-1]` of three.
bool AreTrailing(const Graph& graph, const Arg& dims, size_t rank) {
  std::vector<int64_t> wanted;
  const auto add = [&](const Arg& dim) {
    if (dim.kind() != ArgKind::kInt) return false;
    wanted.push_back(dim.as_int() < 0 ? dim.as_int() + static_cast<int64_t>(rank) : dim.as_int());
    return true;
  };
  if (dims.is_span()) {
    for (const Arg& dim : graph.elements(dims)) {
      if (!add(dim)) return false;
    }
  } else if (!add(dims)) {
    return false;
  }
  if (wanted.empty() || wanted.size() > rank) return false;
  std::ranges::sort(wanted);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != static_cast<int64_t>(rank - wanted.size() + i)) return false;
  }
  return true;
}

bool IsSimplePower(const Graph& graph, NodeId node, bool exact) {
  const std::optional<double> exponent = NumberOf(graph.args(node)[1]);
  if (!exponent) return false;
  constexpr double kExact[] = {1.0, 2.0, 3.0, -1.0};
  if (std::ranges::find(kExact, *exponent) != std::end(kExact)) return true;
  return !exact && (*exponent == 0.5 || *exponent == -0.5);
}

/// Where and how the operand lies already, as autograd says it again when it casts a gradient.
bool IsPlaceOfOperand(const Graph& graph, NodeId node, std::string_view name, const Arg& value) {
  const Module& module = graph.module();
  if (name == "layout") {
    return value.kind() == ArgKind::kRaw && module.str(value.str()) == "torch.strided";
  }
  return name == "device" && value.kind() == ArgKind::kDevice &&
         module.str(value.str()) == module.str(TypeOf(graph, graph.args(node)[0].value())->device);
}

/// Arguments that change what an operator does beyond its formula.
bool HasPlainKwargs(const Graph& graph, NodeId node, std::string_view code) {
  for (size_t i = 0; i < graph.node(node).num_kwargs; ++i) {
    const NamedArg kwarg = graph.kwarg(node, i);
    const std::string_view name = graph.module().str(kwarg.name);
    const bool is_number = NumberOf(kwarg.value).has_value();
    if (name == "alpha" && is_number && (code == "add" || code == "sub")) continue;
    if (name == "value" && is_number && (code == "addcmul" || code == "addcdiv")) continue;
    if (name == "dtype" && code == "cast" && kwarg.value.kind() == ArgKind::kDType) continue;
    if (code == "cast" && IsPlaceOfOperand(graph, node, name, kwarg.value)) continue;
    if (name == "memory_format" && code == "copy") continue;
    return false;
  }
  return true;
}

bool IsReduction(const Graph& graph, NodeId node, std::string_view code) {
  const std::span<const Arg> args = graph.args(node);
  const Type& type = *TypeOf(graph, args[0].value());
  if (code.ends_with("_backward"))
    return args.size() >= 3 && AreTrailing(graph, args[2], type.sizes.size());
  return args.size() >= 2 && AreTrailing(graph, args[1], type.sizes.size());
}

/// Some size is one that a run reads from data.
bool DependsOnData(const Module& module, std::span<const DimId> sizes) {
  const DimTable& dims = module.dims();
  return std::ranges::any_of(sizes, [&](DimId dim) {
    if (dims.kind(dim) != DimKind::kSymbol) return DependsOnData(module, dims.operands(dim));
    const Symbol* symbol = dims.FindSymbol(module.strings().Find(dims.name(dim)));
    return symbol != nullptr && !symbol->backed;
  });
}

/// A sum that kernels add in the order of ATen: on CPUs, of floats, over rows that lie one after
/// the other, more than one of them.
bool IsExactOnCpu(const Graph& graph, NodeId node, std::span<const SymbolSizes> samples) {
  const Module& module = graph.module();
  const Type& from = *TypeOf(graph, graph.args(node)[0].value());
  const Type& to = *TypeOf(graph, graph.result(node));
  if (module.str(from.device) != "cpu" || from.dtype != DType::kF32 || to.dtype != DType::kF32) {
    return false;
  }
  // A run may have a single row.
  if (DependsOnData(module, to.sizes)) return false;
  return std::ranges::all_of(samples, [&](const SymbolSizes& sizes) {
    const auto from_sizes = NumbersOf(module, from.sizes, sizes);
    const auto strides = NumbersOf(module, from.strides, sizes);
    const auto to_sizes = NumbersOf(module, to.sizes, sizes);
    if (!from_sizes || !strides || !to_sizes) return false;
    int64_t stride = 1, rows = 1;
    for (size_t dim = from_sizes->size(); dim-- > 0;) {
      const int64_t size = (*from_sizes)[dim];
      if (size != 1 && (*strides)[dim] != stride) return false;
      stride *= size;
    }
    for (const int64_t size : *to_sizes)
      rows *= size;
    return rows > 1 && stride / rows > 1 && stride / rows <= kMostExactColumns;
  });
}

}  // namespace

const FusibleOp* FindFusible(std::string_view op) {
  const auto entry = std::ranges::lower_bound(kFusible, op, {}, &FusibleOp::op);
  return entry != kFusible.end() && entry->op == op ? &*entry : nullptr;
}

FusionKind FusionKindOf(const Graph& graph, NodeId node, bool exact,
                        std::span<const SymbolSizes> samples) {
  const Node& n = graph.node(node);
  if (n.kind != NodeKind::kCall || n.num_results != 1) return kNone;
  const FusibleOp* entry = FindFusible(graph.op(node));
  if (entry == nullptr || (exact && !entry->is_exact)) return kNone;
  const std::span<const Arg> args = graph.args(node);
  if (args.empty() || !args[0].is_value() || !CanCompute(graph, graph.result(node), samples))
    return kNone;
  bool can_compute = true;
  graph.ForEachOperand(
      node, [&](ValueId value) { can_compute = can_compute && CanCompute(graph, value, samples); });
  if (!can_compute || !HasPlainKwargs(graph, node, entry->code)) return kNone;
  // A reshape that copies has a contiguous result, which is what a kernel writes.
  if (entry->kind == kReshape) return kReshape;
  const DType dtype = TypeOf(graph, graph.result(node))->dtype;
  // ATen computes in fp32 what is bf16, and rounds; where it rounds a number is up to the kernel.
  if (exact && dtype == DType::kBF16 && entry->code != "cast") return kNone;
  if (TypeOf(graph, args[0].value())->dtype != dtype && entry->code != "cast") return kNone;
  if (entry->code == "pow" && !IsSimplePower(graph, node, exact)) return kNone;
  if (entry->kind == kReduction && !IsReduction(graph, node, entry->code)) return kNone;
  if (exact && entry->kind == kReduction && !IsExactOnCpu(graph, node, samples)) return kNone;
  return entry->kind;
}

std::optional<GraphId> RegionBodyOf(const Graph& graph, NodeId node) {
  if (graph.op(node) != kFusedOp || graph.FindKwarg(node, kRegionArg) == nullptr)
    return std::nullopt;
  const NodeId attribute = graph.value(graph.args(node)[0].value()).def;
  return graph.args(attribute)[0].graph();
}

}  // namespace strata
