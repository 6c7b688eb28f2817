#include "runtime/models/chunks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

namespace strata {

using at::Tensor;

ChunkCount::ChunkCount(const TrainConfig& config)
    : chunks(config.compile.ep_overlap.num_chunks),
      ranks(config.compile.ep_overlap.along_seq ? config.parallelism.context
                                                : config.parallelism.data_ranks()) {}

std::vector<Tensor> Chunks(const Tensor& x, int64_t dim, const ChunkCount& count) {
  const int64_t size = x.size(dim) / count.ranks;
  std::vector<int64_t> sizes;
  for (int64_t chunk = 0; chunk < count.chunks; ++chunk)
    sizes.push_back((size + count.chunks - 1 - chunk) / count.chunks);
  if (count.ranks == 1) {
    std::vector<Tensor> chunks = x.split_with_sizes(sizes, dim);
    for (Tensor& chunk : chunks)
      chunk = chunk.contiguous();
    return chunks;
  }
  std::vector<Tensor> chunks =
      x.unflatten(dim, {count.ranks, size}).split_with_sizes(sizes, dim + 1);
  for (Tensor& chunk : chunks)
    chunk = chunk.contiguous().flatten(dim, dim + 1);
  return chunks;
}

namespace {

/// Tensors of a mask of flex attention. Those with one row serve every row.
void CutFlex(const std::vector<Tensor>& whole, std::vector<Tensor> FlexMask::* part,
             const ChunkCount& count, std::vector<Sequence>& chunks) {
  for (size_t i = 0; i < whole.size(); ++i) {
    if (whole[i].size(0) == 1) continue;
    const std::vector<Tensor> parts = Chunks(whole[i], 0, count);
    for (size_t chunk = 0; chunk < parts.size(); ++chunk)
      ((*chunks[chunk].flex).*part)[i] = parts[chunk];
  }
}

}  // namespace

std::vector<Sequence> BatchChunks(const Sequence& sequence, int64_t batch,
                                  const ChunkCount& count) {
  std::vector<Sequence> chunks(static_cast<size_t>(count.chunks), sequence);
  const auto cut = [&](Tensor Sequence::* field) {
    const std::vector<Tensor> parts = Chunks(sequence.*field, 0, count);
    for (size_t chunk = 0; chunk < parts.size(); ++chunk)
      chunks[chunk].*field = parts[chunk];
  };
  const bool is_per_row = sequence.rope.dim() == 3 && sequence.rope.size(0) == batch;
  if (is_per_row) cut(&Sequence::rope);
  if (sequence.mask.defined()) cut(&Sequence::mask);
  if (sequence.flex) {
    for (auto part : {&FlexMask::score_buffers, &FlexMask::mask_buffers, &FlexMask::blocks})
      CutFlex((*sequence.flex).*part, part, count, chunks);
  }
  return chunks;
}

namespace {

/// The parts of each rank one after the other, as they were before Chunks.
Tensor Joined(std::vector<Tensor> chunks, int64_t dim, int64_t ranks) {
  if (ranks == 1) return at::cat(chunks, dim);
  for (Tensor& chunk : chunks)
    chunk = chunk.unflatten(dim, {ranks, chunk.size(dim) / ranks});
  return at::cat(chunks, dim + 1).flatten(dim, dim + 1);
}

}  // namespace

Tensor InChunks(bool along_seq, const ChunkCount& count, const Tensor& x,
                std::vector<Tensor>& tokens_per_expert,
                const std::function<Tensor(const Tensor&, size_t, std::vector<Tensor>&)>& module) {
  const int64_t dim = along_seq ? 1 : 0;
  std::vector<Tensor> results, counts;
  for (const Tensor& part : Chunks(x, dim, count)) {
    std::vector<Tensor> part_counts;
    results.push_back(module(part, results.size(), part_counts));
    for (size_t i = 0; i < part_counts.size(); ++i) {
      if (i < counts.size()) {
        counts[i] = counts[i] + part_counts[i];
      } else {
        counts.push_back(part_counts[i]);
      }
    }
  }
  tokens_per_expert.insert(tokens_per_expert.end(), counts.begin(), counts.end());
  return Joined(std::move(results), dim, count.ranks);
}

}  // namespace strata
