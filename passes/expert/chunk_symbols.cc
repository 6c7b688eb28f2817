#include "passes/expert/chunk_symbols.h"

#include <algorithm>

namespace strata {
namespace {

bool IsTokenMatrix(const Type& type) {
  return type.sizes.size() == 2 && (type.dtype == DType::kI64 || type.dtype == DType::kI32);
}

}  // namespace

bool IsTensor(const Module& module, TypeId type) {
  return type.valid() && module.types()[type].kind == TypeKind::kTensor;
}

Result<ChunkSymbols> ChunkSymbols::Select(const Graph& graph, Module& module,
                                          const ChunkOptions& options) {
  ChunkSymbols symbols(module, options.num_chunks, options.uneven);
  std::vector<const Type*> inputs;
  const std::vector<NodeId> placeholders = graph.placeholders();
  for (size_t i = 0; i < placeholders.size(); ++i) {
    const TypeId type = graph.value(graph.result(placeholders[i])).type;
    if (static_cast<int64_t>(i) >= options.num_static_inputs && IsTensor(module, type))
      inputs.push_back(&module.types()[type]);
  }
  const bool has_matrices =
      std::ranges::any_of(inputs, [](const Type* input) { return IsTokenMatrix(*input); });
  const size_t dim = options.chunk_dim == ChunkDim::kSeq && has_matrices ? 1 : 0;
  for (const Type* input : inputs)
    if (dim < input->sizes.size() && (dim == 0 || IsTokenMatrix(*input)))
      symbols.AddSymbolsOf(input->sizes[dim]);
  if (symbols.symbols_.empty()) {
    return Error(
        "expected at least one selected dynamic placeholder dimension: graph {}: dimension {} of "
        "no input is symbolic, trace with compile.symbolic_dims={}",
        graph.name_text(), dim, options.chunk_dim == ChunkDim::kBatch ? "batch" : "seq");
  }
  STRATA_RETURN_IF_ERROR(symbols.CheckHints());
  return symbols;
}

void ChunkSymbols::AddSymbolsOf(DimId dim) {
  const DimTable& dims = module_->dims();
  if (dims.kind(dim) == DimKind::kConst) return;
  if (dims.kind(dim) != DimKind::kSymbol) {
    for (const DimId operand : dims.operands(dim))
      AddSymbolsOf(operand);
  } else if (std::ranges::find(symbols_, dim) == symbols_.end()) {
    symbols_.push_back(dim);
  }
}

Status ChunkSymbols::CheckHints() const {
  const DimTable& dims = module_->dims();
  for (const DimId symbol : symbols_) {
    const std::optional<int64_t> hint = dims.Hint(symbol);
    if (!hint) {
      return Error("symbol of a chunked dimension without an optimization hint: {}: give it one",
                   dims.ToString(symbol));
    }
    if (*hint < num_chunks_ || (!uneven_ && *hint % num_chunks_ != 0)) {
      return Error(
          "Cannot split selected chunk dimension: symbol {} is {}: take a size that {} chunks "
          "divide{}",
          dims.ToString(symbol), *hint, num_chunks_,
          *hint < num_chunks_ ? "" : ", or allow uneven chunks");
    }
  }
  return Ok();
}

DimId ChunkSymbols::Part(DimId symbol, int64_t chunk) const {
  DimTable& dims = module_->dims();
  const int64_t rounding = uneven_ ? num_chunks_ - 1 - chunk : 0;
  return dims.FloorDiv(dims.Add(symbol, dims.Const(rounding)), dims.Const(num_chunks_));
}

bool ChunkSymbols::Mentions(DimId dim) const {
  if (!dim.valid()) return false;
  const auto known = mentions_.find(dim.index);
  if (known != mentions_.end()) return known->second;
  const DimTable& dims = module_->dims();
  bool mentions = false;
  if (dims.kind(dim) == DimKind::kSymbol) {
    mentions = std::ranges::find(symbols_, dim) != symbols_.end();
  } else if (dims.kind(dim) != DimKind::kConst) {
    mentions = std::ranges::any_of(dims.operands(dim), [&](DimId part) { return Mentions(part); });
  }
  mentions_.emplace(dim.index, mentions);
  return mentions;
}

bool ChunkSymbols::Carries(TypeId id) const {
  if (!id.valid()) return false;
  const auto known = carries_.find(id.index);
  if (known != carries_.end()) return known->second;
  const Type& type = module_->types()[id];
  const auto mentions = [&](DimId dim) { return Mentions(dim); };
  const bool carries = type.kind == TypeKind::kSymInt
                           ? Mentions(type.dim)
                           : std::ranges::any_of(type.sizes, mentions) ||
                                 std::ranges::any_of(type.strides, mentions);
  carries_.emplace(id.index, carries);
  return carries;
}

Result<std::optional<size_t>> ChunkSymbols::DimOf(TypeId id) const {
  std::optional<size_t> found;
  if (!IsTensor(*module_, id)) return found;
  const Type& type = module_->types()[id];
  for (size_t dim = 0; dim < type.sizes.size(); ++dim) {
    if (!Mentions(type.sizes[dim])) continue;
    if (found) {
      return Error("selected chunk symbols in multiple dims: type {}: cut along another dimension",
                   module_->types().ToString(id));
    }
    found = dim;
  }
  return found;
}

}  // namespace strata
