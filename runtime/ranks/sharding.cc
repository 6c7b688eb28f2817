#include "runtime/ranks/sharding.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "runtime/plan/input_sizes.h"

namespace strata {

using at::Tensor;

Result<Sharding> Sharding::Parse(std::string_view type, const Mesh& mesh,
                                 const SymbolSizes& symbols) {
  STRATA_TRY(ShardCuts cuts, ParseShardCuts(type, mesh, symbols));
  return Sharding(std::move(cuts));
}

int64_t Sharding::PartOf(int64_t rank) const {
  int64_t part = 0;
  for (const ShardCut& cut : cuts_.cuts)
    part = part * cut.axis.size + rank / cut.axis.stride % cut.axis.size;
  return part;
}

Tensor Sharding::Shard(const Tensor& whole, int64_t rank) const {
  Tensor part = whole;
  for (const ShardCut& cut : cuts_.cuts) {
    const int64_t index = rank / cut.axis.stride % cut.axis.size;
    const int64_t begin = std::min(index * cut.chunk, cut.size);
    const int64_t end = std::min(begin + cut.chunk, cut.size);
    Tensor chunk = part.slice(cut.dim, begin, end);
    if (end - begin < cut.chunk) {
      std::vector<int64_t> sizes = part.sizes().vec();
      sizes[static_cast<size_t>(cut.dim)] = cut.chunk;
      Tensor padded = at::zeros(sizes, part.options());
      padded.slice(cut.dim, 0, end - begin).copy_(chunk);
      chunk = std::move(padded);
    }
    part = std::move(chunk);
  }
  return part.clone(at::MemoryFormat::Contiguous);
}

Tensor Sharding::Gather(std::span<const Tensor> parts) const {
  return GatherFrom(0, 0, parts).clone(at::MemoryFormat::Contiguous);
}

Tensor Sharding::GatherFrom(size_t index, int64_t rank, std::span<const Tensor> parts) const {
  if (index == cuts_.cuts.size()) return parts[static_cast<size_t>(rank)];
  const ShardCut& cut = cuts_.cuts[index];
  std::vector<Tensor> chunks;
  for (int64_t i = 0; i < cut.axis.size; ++i)
    chunks.push_back(GatherFrom(index + 1, rank + i * cut.axis.stride, parts));
  return at::cat(chunks, cut.dim).slice(cut.dim, 0, cut.size);
}

Result<std::vector<Sharding>> InputShardings(const Graph& graph, const Mesh& mesh) {
  STRATA_TRY(std::vector<ShardCuts> inputs, InputCuts(graph, mesh, HintsOf(graph)));
  std::vector<Sharding> shardings;
  for (ShardCuts& cuts : inputs)
    shardings.push_back(Sharding(std::move(cuts)));
  return shardings;
}

Result<std::vector<std::optional<Sharding>>> OutputShardings(const Graph& graph, const Mesh& mesh) {
  STRATA_TRY(std::vector<std::optional<ShardCuts>> outputs,
             OutputCuts(graph, mesh, HintsOf(graph)));
  std::vector<std::optional<Sharding>> shardings;
  for (std::optional<ShardCuts>& cuts : outputs) {
    shardings.emplace_back();
    if (cuts) shardings.back() = Sharding(*std::move(cuts));
  }
  return shardings;
}

}  // namespace strata
