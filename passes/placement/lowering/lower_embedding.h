#pragma once
#include "base/result.h"
#include "ir/rewriter.h"
#include "passes/placement/placement.h"

namespace strata {

/// Replaces an embedding whose weight is sharded along the vocabulary, or the gradient of such a
/// weight: a rank looks up, or adds to, its own rows alone. Indices of other rows read or write a
/// row with factor 0.
///
///   i = idx − index of the first own row,  m = 0 ≤ i < rows,  c = clamp(i, 0, rows − 1)
///   embedding(weight, idx)           →  embedding(weight, c) · m, a partial sum
///   embedding_dense_backward(g, idx) →  embedding_dense_backward(g · m, c)
///
/// Returns what readers of the node read. `vocabulary`: placements of the weight or of its
/// gradient, of `whole` rows. Types of the graph are local. Source: VocabParallelEmbedding of
/// Megatron-LM; _MaskPartial of torch.distributed.tensor.
ValueId LowerEmbedding(Rewriter& rewriter, NodeId node, const Placements& vocabulary, int64_t whole,
                       const Mesh& mesh);

/// True for an axis along which the rows of an embedding are cut.
bool CutsRows(const Placements& vocabulary);

}  // namespace strata
