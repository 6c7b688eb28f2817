#include "runtime/models/chunks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

namespace strata {

using at::Tensor;

std::vector<Tensor> Chunks(const Tensor& x, int64_t dim, int64_t count) {
  std::vector<int64_t> sizes;
  for (int64_t chunk = 0; chunk < count; ++chunk)
    sizes.push_back((x.size(dim) + count - 1 - chunk) / count);
  std::vector<Tensor> chunks = x.split_with_sizes(sizes, dim);
  for (Tensor& chunk : chunks)
    chunk = chunk.contiguous();
  return chunks;
}

std::vector<Sequence> BatchChunks(const Sequence& sequence, int64_t batch, int64_t count) {
  std::vector<Sequence> chunks(static_cast<size_t>(count), sequence);
  const auto cut = [&](Tensor Sequence::* field) {
    const std::vector<Tensor> parts = Chunks(sequence.*field, 0, count);
    for (size_t chunk = 0; chunk < parts.size(); ++chunk)
      chunks[chunk].*field = parts[chunk];
  };
  const bool is_per_row = sequence.rope.dim() == 3 && sequence.rope.size(0) == batch;
  if (is_per_row) cut(&Sequence::rope);
  if (sequence.mask.defined()) cut(&Sequence::mask);
  return chunks;
}

Tensor InChunks(const ExpertOverlapConfig& config, const Tensor& x,
                std::vector<Tensor>& tokens_per_expert,
                const std::function<Tensor(const Tensor&, size_t, std::vector<Tensor>&)>& module) {
  const int64_t dim = config.along_seq ? 1 : 0;
  std::vector<Tensor> results, counts;
  for (const Tensor& part : Chunks(x, dim, config.num_chunks)) {
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
  return at::cat(results, dim);
}

}  // namespace strata
