#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/config/config.h"
#include "runtime/models/sequence.h"
#include "runtime/trace/scope.h"

namespace strata {

/// Into how many chunks, and of how many ranks each has a part: ranks hold equal parts of the batch
/// or of the sequences, one after the other, and a chunk is the same part of each of them.
struct ChunkCount {
  explicit ChunkCount(const TrainConfig& config);

  int64_t chunks;
  int64_t ranks;
};

/// A module that is called once per chunk of its input: what the pass `ep-chunk` makes of a graph,
/// done by the program itself (compile.ep_overlap.strategy = "eager"). Nodes have the attributes of
/// the pass (passes/core/chunk_attributes.h).
class ChunkedModule {
 public:
  /// The module that is called `name` where the program is.
  ChunkedModule(std::string_view name, const ChunkCount& count)
      : root_(PathInside(name)), count_(count) {}

  /// `x` cut along `dim`, each part contiguous: the first ones have one more of each rank where the
  /// number of chunks does not divide its part. REQUIRES: the ranks divide the dimension.
  std::vector<at::Tensor> Cut(const at::Tensor& x, int64_t dim) const;

  /// The sequences of each chunk of the batch: what has a row for each of its rows is cut with
  /// them. A body of flex attention counts rows within the chunk. Throws where a mask has other
  /// rows than the batch.
  std::vector<Sequence> CutBatch(const Sequence& sequence, int64_t batch) const;

  /// What the module returns for a chunk `part` of its input.
  using Body = std::function<at::Tensor(const at::Tensor& part, size_t chunk,
                                        std::vector<at::Tensor>& tokens_per_expert)>;
  /// Calls `body` for each chunk of `x` `[batch, seq, dim]`, first chunk first, and concatenates
  /// the results. The counts of the chunks are added. Throws where a result is not `[batch, seq,
  /// …]` of its chunk.
  at::Tensor Call(const at::Tensor& x, bool along_seq, std::vector<at::Tensor>& tokens_per_expert,
                  const Body& body) const;

 private:
  /// Attributes of the nodes recorded meanwhile.
  AttributeScope Role(std::string_view role) const;
  AttributeScope Role(std::string_view role, size_t chunk) const;
  at::Tensor RunBody(const Body& body, const at::Tensor& part, int64_t dim, size_t chunk,
                     std::vector<at::Tensor>& tokens_per_expert) const;
  void AddCounts(const std::vector<at::Tensor>& of_chunk, std::vector<at::Tensor>& counts) const;
  at::Tensor Joined(std::vector<at::Tensor> chunks, int64_t dim) const;
  void CutFlex(const std::vector<at::Tensor>& whole, std::vector<at::Tensor> FlexMask::* part,
               std::vector<Sequence>& chunks) const;

  std::string root_;
  ChunkCount count_;
};

}  // namespace strata
