#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/module.h"

namespace strata {

/// Along what the inputs of a step are cut.
enum class ChunkDim : uint8_t { kBatch, kSeq };

/// How a graph is cut into chunks. The names of the options are those of torchtitan's table
/// `compile.ep_overlap`.
struct ChunkOptions {
  ChunkDim chunk_dim = ChunkDim::kBatch;
  std::string module_fqn = "layers.*";  ///< roots of regions, a pattern per part of the path
  int64_t num_chunks = 2;
  bool uneven = false;            ///< the first chunks may be one larger than the last
  int64_t num_static_inputs = 0;  ///< leading inputs that are state: never cut
};

/// The symbols along which a graph is cut: what its inputs have as their batch or sequence size.
/// That a size mentions one is the only thing that says that a tensor is cut.
///
/// REQUIRES: the module outlives the object.
class ChunkSymbols {
 public:
  /// Batch: the symbols of dimension 0 of the inputs that are tensors. Seq: of dimension 1 of token
  /// ids `[batch, seq]`; of dimension 0 where no input is a matrix of integers, as tokens are flat
  /// then. Inputs before `options.num_static_inputs` do not count.
  /// Errors: no such symbol, one without hint, or whose hint the chunks cannot divide.
  static Result<ChunkSymbols> Select(const Graph& graph, Module& module,
                                     const ChunkOptions& options);

  const std::vector<DimId>& symbols() const { return symbols_; }
  /// The size of chunk `chunk` of a dimension of size `symbol`.
  DimId Part(DimId symbol, int64_t chunk) const;

  bool Mentions(DimId dim) const;
  /// Whether a size or stride of a tensor, or an integer, mentions one.
  bool Carries(TypeId type) const;
  bool Carries(const Graph& graph, ValueId value) const { return Carries(graph.value(value).type); }
  /// The dimension of a tensor that is cut; none: it has no such dimension.
  /// Errors: several have.
  Result<std::optional<size_t>> DimOf(TypeId type) const;

 private:
  ChunkSymbols(Module& module, int64_t num_chunks, bool uneven)
      : module_(&module), num_chunks_(num_chunks), uneven_(uneven) {}
  void AddSymbolsOf(DimId dim);
  Status CheckHints() const;

  Module* module_;
  int64_t num_chunks_;
  bool uneven_;
  std::vector<DimId> symbols_;
  mutable std::unordered_map<int32_t, bool> mentions_;  // by expression
  mutable std::unordered_map<int32_t, bool> carries_;   // by type
};

/// False for integers of the program, and where the type is not known.
bool IsTensor(const Module& module, TypeId type);

}  // namespace strata
