#include "runtime/plan/lower_operands.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/module.h"

namespace strata {
namespace {

/// Whether a size mentions an unbacked symbol without a number in this plan.
bool IsDataDependent(const Module& module, DimId dim, const SymbolSizes& sizes) {
  const DimTable& dims = module.dims();
  if (dims.kind(dim) == DimKind::kSymbol) {
    const Symbol* symbol = dims.FindSymbol(module.strings().Find(dims.name(dim)));
    return symbol != nullptr && !symbol->backed && !sizes.contains(dims.name(dim));
  }
  return std::ranges::any_of(
      dims.operands(dim), [&](DimId operand) { return IsDataDependent(module, operand, sizes); });
}

}  // namespace

Error UnsupportedInPlan(std::string_view why) {
  return Error(ErrorCode::kUnsupported, "{}", why);
}

Result<Plan::Input> LowerInput(const Graph& graph, NodeId placeholder, const SymbolSizes& sizes) {
  const Module& module = graph.module();
  const TypeId id = graph.value(graph.result(placeholder)).type;
  if (id.valid() && module.types()[id].kind == TypeKind::kSymInt && graph.is_body())
    return UnsupportedInPlan(
        "a number that data decide is an input of a body: pass it as a tensor");
  if (!id.valid() || module.types()[id].kind != TypeKind::kTensor)
    return UnsupportedInPlan("an input must be a tensor of known type");
  const Type& type = module.types()[id];
  Plan::Input input{.slot = {}, .dtype = type.dtype, .sizes = {}, .strides = {}};
  bool is_sized = true;
  for (const DimId dim : type.sizes) {
    if (IsDataDependent(module, dim, sizes)) {
      input.sizes.push_back(kAnySize);
      is_sized = false;
      continue;
    }
    STRATA_TRY(const int64_t number, NumberOf(module, dim, sizes));
    input.sizes.push_back(number);
  }
  if (type.has_strides && is_sized) {
    STRATA_TRY(input.strides, NumbersOf(module, type.strides, sizes));
  }
  const std::string_view kind = graph.attribute(placeholder, "input");
  input.is_static = kind == "parameter" || kind == "buffer" || kind == "state";
  return input;
}

Result<PlanArg> LowerArg(const Graph& graph, const Arg& arg, const SymbolSizes& sizes,
                         const std::function<PlanArg(ValueId)>& lower_value) {
  PlanArg lowered;
  lowered.kind = arg.kind();
  switch (arg.kind()) {
    case ArgKind::kNone:
      return lowered;
    case ArgKind::kValue:
      return lower_value(arg.value());
    case ArgKind::kInt:
      lowered.integer = arg.as_int();
      return lowered;
    case ArgKind::kBool:
      lowered.integer = arg.as_bool() ? 1 : 0;
      return lowered;
    case ArgKind::kFloat:
      lowered.real = arg.as_float();
      return lowered;
    case ArgKind::kDType:
      lowered.dtype = arg.dtype();
      return lowered;
    case ArgKind::kString:
    case ArgKind::kDevice:
    case ArgKind::kRaw:
      lowered.text = graph.module().str(arg.str());
      return lowered;
    case ArgKind::kDim: {
      lowered.kind = ArgKind::kInt;
      STRATA_TRY(lowered.integer, NumberOf(graph.module(), arg.dim(), sizes));
      return lowered;
    }
    case ArgKind::kList:
    case ArgKind::kTuple:
      for (const Arg& element : graph.elements(arg)) {
        STRATA_TRY(PlanArg item, LowerArg(graph, element, sizes, lower_value));
        lowered.elements.push_back(std::move(item));
      }
      return lowered;
    case ArgKind::kGraph:
      return UnsupportedInPlan("it takes a body and is not an operator");
    case ArgKind::kDict:
      return UnsupportedInPlan("an operator takes no dictionaries");
    case ArgKind::kCall:
      return UnsupportedInPlan(
          "it takes a slice or another object of Python: name a graph that AOTAutograd made, such "
          "as aot_joint_graph");
  }
  return UnsupportedInPlan("an argument of unknown kind");
}

}  // namespace strata
