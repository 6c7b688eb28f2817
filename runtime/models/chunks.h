#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "runtime/config/config.h"
#include "runtime/models/sequence.h"

namespace strata {

// Modules that are called once per chunk of their input: what the pass `ep-chunk` makes of a graph,
// done by the program itself (compile.ep_overlap.strategy = "eager").

/// Into how many chunks, and of how many ranks each has a part: ranks hold equal parts of the batch
/// or of the sequences, one after the other, and a chunk is the same part of each of them.
struct ChunkCount {
  explicit ChunkCount(const TrainConfig& config);

  int64_t chunks;
  int64_t ranks;
};

/// `x` cut along `dim`, each part contiguous: the first ones have one more of each rank where the
/// number of chunks does not divide its part. REQUIRES: the ranks divide the dimension.
std::vector<at::Tensor> Chunks(const at::Tensor& x, int64_t dim, const ChunkCount& count);

/// The sequences of each chunk of the batch: what has a row for each of its rows is cut with them.
/// A body of flex attention counts rows within the chunk. REQUIRES: the sizes are those of Chunks.
std::vector<Sequence> BatchChunks(const Sequence& sequence, int64_t batch, const ChunkCount& count);

/// Calls `module(part, chunk, tokens_per_expert)` for each chunk of `x` `[batch, seq, dim]`, first
/// chunk first, and concatenates the results. The counts of the chunks are added.
at::Tensor InChunks(
    bool along_seq, const ChunkCount& count, const at::Tensor& x,
    std::vector<at::Tensor>& tokens_per_expert,
    const std::function<at::Tensor(const at::Tensor& part, size_t chunk,
                                   std::vector<at::Tensor>& tokens_per_expert)>& module);

}  // namespace strata
