#include "runtime/models/chunks.h"

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "passes/core/chunk_attributes.h"

namespace strata {

using at::Tensor;

ChunkCount::ChunkCount(const TrainConfig& config)
    : chunks(config.compile.ep_overlap.num_chunks),
      ranks(config.compile.ep_overlap.along_seq ? config.parallelism.context
                                                : config.parallelism.data_ranks()) {}

AttributeScope ChunkedModule::Role(std::string_view role) const {
  return AttributeScope(
      {{kChunkedRegionAttribute, root_}, {kChunkRoleAttribute, std::string(role)}});
}

AttributeScope ChunkedModule::Role(std::string_view role, size_t chunk) const {
  return AttributeScope({{kChunkedRegionAttribute, root_},
                         {kChunkRoleAttribute, std::string(role)},
                         {kChunkIdAttribute, std::to_string(chunk)}});
}

std::vector<Tensor> ChunkedModule::Cut(const Tensor& x, int64_t dim) const {
  const int64_t size = x.size(dim) / count_.ranks;
  std::vector<int64_t> sizes;
  for (int64_t chunk = 0; chunk < count_.chunks; ++chunk)
    sizes.push_back((size + count_.chunks - 1 - chunk) / count_.chunks);
  const bool has_ranks = count_.ranks > 1;
  std::vector<Tensor> chunks;
  {
    const AttributeScope split = Role(kSplitRole);
    chunks = has_ranks ? x.unflatten(dim, {count_.ranks, size}).split_with_sizes(sizes, dim + 1)
                       : x.split_with_sizes(sizes, dim);
  }
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    const AttributeScope input = Role(kChunkInputRole, chunk);
    chunks[chunk] = chunks[chunk].contiguous();
    if (has_ranks) chunks[chunk] = chunks[chunk].flatten(dim, dim + 1);
  }
  return chunks;
}

/// Tensors of a mask of flex attention. Those with one row serve every row.
void ChunkedModule::CutFlex(const std::vector<Tensor>& whole, std::vector<Tensor> FlexMask::* part,
                            std::vector<Sequence>& chunks) const {
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i].size(0) == 1) continue;
    const std::vector<Tensor> parts = Cut(whole[i], 0);
    for (size_t chunk = 0; chunk < parts.size(); ++chunk)
      ((*chunks[chunk].flex).*part)[i] = parts[chunk];
  }
}

std::vector<Sequence> ChunkedModule::CutBatch(const Sequence& sequence, int64_t batch) const {
  std::vector<Sequence> chunks(static_cast<size_t>(count_.chunks), sequence);
  const auto cut = [&](Tensor Sequence::* field) {
    const std::vector<Tensor> parts = Cut(sequence.*field, 0);
    for (size_t chunk = 0; chunk < parts.size(); ++chunk)
      chunks[chunk].*field = parts[chunk];
  };
  const bool is_per_row = sequence.rope.dim() == 3 && sequence.rope.size(0) == batch;
  if (is_per_row) cut(&Sequence::rope);
  if (sequence.mask.defined()) {
    TORCH_CHECK(sequence.mask.dim() == 4 && sequence.mask.size(0) == batch, "cannot cut ", root_,
                " into chunks: its mask is ", sequence.mask.sizes(), ", not [", batch,
                ", 1, seq, seq]");
    cut(&Sequence::mask);
  }
  if (sequence.flex) {
    for (auto part : {&FlexMask::score_buffers, &FlexMask::mask_buffers, &FlexMask::blocks})
      CutFlex((*sequence.flex).*part, part, chunks);
  }
  return chunks;
}

/// The parts of each rank one after the other, as they were before Cut.
Tensor ChunkedModule::Joined(std::vector<Tensor> chunks, int64_t dim) const {
  const AttributeScope join = Role(kMaterializationRole);
  if (count_.ranks == 1) return at::cat(chunks, dim);
  for (Tensor& chunk : chunks)
    chunk = chunk.unflatten(dim, {count_.ranks, chunk.size(dim) / count_.ranks});
  return at::cat(chunks, dim + 1).flatten(dim, dim + 1);
}

void ChunkedModule::AddCounts(const std::vector<Tensor>& of_chunk,
                              std::vector<Tensor>& counts) const {
  const AttributeScope sum({{kChunkedRegionAttribute, root_},
                            {kChunkRoleAttribute, std::string(kMaterializationRole)},
                            {kChunkProofAttribute, std::string(kCountProof)}});
  for (size_t i = 0; i < of_chunk.size(); ++i) {
    if (i < counts.size()) {
      counts[i] = counts[i] + of_chunk[i];
    } else {
      counts.push_back(of_chunk[i]);
    }
  }
}

Tensor ChunkedModule::RunBody(const Body& body, const Tensor& part, int64_t dim, size_t chunk,
                              std::vector<Tensor>& tokens_per_expert) const {
  const AttributeScope scope = Role(kBodyRole, chunk);
  const Tensor result = body(part, chunk, tokens_per_expert);
  TORCH_CHECK(result.defined() && result.dim() > dim && result.size(dim) == part.size(dim),
              "cannot join the chunks of ", root_, ": chunk ", chunk, " is ", part.sizes(),
              ", its result ", result.defined() ? result.sizes() : at::IntArrayRef(),
              ": dimension ", dim, " differs");
  return result;
}

Tensor ChunkedModule::Call(const Tensor& x, bool along_seq, std::vector<Tensor>& tokens_per_expert,
                           const Body& body) const {
  const int64_t dim = along_seq ? 1 : 0;
  std::vector<Tensor> results, counts;
  for (const Tensor& part : Cut(x, dim)) {
    std::vector<Tensor> part_counts;
    results.push_back(RunBody(body, part, dim, results.size(), part_counts));
    AddCounts(part_counts, counts);
  }
  tokens_per_expert.insert(tokens_per_expert.end(), counts.begin(), counts.end());
  return Joined(std::move(results), dim);
}

}  // namespace strata
