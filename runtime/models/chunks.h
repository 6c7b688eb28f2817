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

/// `x` cut along `dim`, each part contiguous: the first ones have one more where `count` does not
/// divide the size.
std::vector<at::Tensor> Chunks(const at::Tensor& x, int64_t dim, int64_t count);

/// The sequences of one chunk of the batch. REQUIRES: the sizes are those of Chunks.
std::vector<Sequence> BatchChunks(const Sequence& sequence, int64_t batch, int64_t count);

/// Calls `module(part, chunk, tokens_per_expert)` for each chunk of `x` `[batch, seq, dim]`, first
/// chunk first, and concatenates the results. The counts of the chunks are added.
at::Tensor InChunks(
    const ExpertOverlapConfig& config, const at::Tensor& x,
    std::vector<at::Tensor>& tokens_per_expert,
    const std::function<at::Tensor(const at::Tensor& part, size_t chunk,
                                   std::vector<at::Tensor>& tokens_per_expert)>& module);

}  // namespace strata
