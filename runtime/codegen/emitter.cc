#include "runtime/codegen/emitter.h"

#include <vector>

#include "runtime/codegen/formulas.h"

namespace strata {

std::string Emitter::Run() {
  EmitHead();
  ++depth_;
  EmitBody();
  End();
  return std::move(text_);
}

void Emitter::End() {
  --depth_;
  Line("}}");
}

void Emitter::EmitOps(std::span<const int32_t> ops) {
  for (const int32_t op : ops)
    EmitOp(op);
}

void Emitter::EmitOp(int32_t index) {
  const Kernel::Op& op = Op(index);
  std::string value;
  if (op.code == "load") {
    value = LoadText(op);
  } else {
    std::vector<std::string> operands;
    for (const int32_t operand : op.operands)
      operands.push_back(fmt::format("v{}", operand));
    value = FormulaText(op, operands);
  }
  Line("const {} v{} = {};", ComputeType(op.dtype), index, value);
}

void Emitter::EmitStores(std::span<const int32_t> stores) {
  for (const int32_t index : stores) {
    const Kernel::Store& store = kernel_.stores[static_cast<size_t>(index)];
    Line("strata_store({}, v{});", StoreAddress(store), store.op);
  }
}

std::string SourceOf(std::string_view preamble, std::span<const Kernel> kernels,
                     std::string (*function)(const Kernel& kernel, std::string_view name)) {
  std::string source(preamble);
  for (size_t i = 0; i < kernels.size(); ++i)
    source += function(kernels[i], fmt::format("strata_kernel_{}", i));
  return source;
}

}  // namespace strata
