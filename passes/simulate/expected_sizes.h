#pragma once
#include <cstdint>
#include <optional>

#include "ir/graph.h"
#include "ir/symbol_sizes.h"

namespace strata {

/// The sizes that estimates of a graph of one rank count with: hints, and for data-dependent sizes
/// without one what balanced experts give. An all-to-all brings as many rows as it takes, and the
/// parts of a split are equally large. All others stay unknown.
///
/// REQUIRES: the graph outlives the object and stays as it is.
class ExpectedSizes {
 public:
  explicit ExpectedSizes(const Graph& graph);

  std::optional<int64_t> Of(DimId dim) const;
  /// 0: unknown.
  double BytesOf(ValueId value) const;
  double BytesOf(TypeId type) const;
  /// What a rank gives and gets: the bytes of the result of an all-gather, of the operand of
  /// others. REQUIRES: a launch.
  double CollectiveBytes(NodeId launch) const;

 private:
  void LearnFromExchange(NodeId launch);
  void LearnFromSplit(NodeId node);
  /// The symbol that is the size of a dimension of `value` and that is unknown so far.
  std::optional<DimId> UnknownSize(ValueId value, size_t dim) const;
  std::optional<DimId> SizeOf(ValueId value, size_t dim) const;
  void Learn(DimId symbol, int64_t size);

  const Graph* graph_;
  SymbolSizes sizes_;
};

}  // namespace strata
