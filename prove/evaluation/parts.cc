#include "prove/evaluation/parts.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace strata::prove {

Tensor Chunk(const Tensor& tensor, int64_t dim, int64_t index, int64_t parts) {
  Sizes sizes = tensor.sizes();
  auto& size = sizes[static_cast<size_t>(dim)];
  size /= parts;
  const int64_t offset =
      tensor.offset() + index * size * tensor.strides()[static_cast<size_t>(dim)];
  return {tensor.domain(), tensor.storage(), std::move(sizes), tensor.strides(), offset};
}

Tensor PaddedChunk(const Tensor& tensor, int64_t dim, int64_t index, int64_t parts) {
  const auto at = static_cast<size_t>(dim);
  const int64_t size = tensor.sizes()[at], part = (size + parts - 1) / parts;
  if (part * parts == size) return Chunk(tensor, dim, index, parts);
  Sizes sizes = tensor.sizes();
  sizes[at] = part;
  Tensor padded(tensor.domain(), sizes);
  const int64_t begin = std::min(index * part, size);
  sizes[at] = std::min(begin + part, size) - begin;
  const Tensor own(tensor.domain(), tensor.storage(), sizes, tensor.strides(),
                   tensor.offset() + begin * tensor.strides()[at]);
  Tensor(padded.domain(), padded.storage(), sizes, padded.strides(), 0).Write(own.Read());
  return padded;
}

Tensor LocalPart(const Tensor& whole, std::span<const Placement> placements, const Mesh& mesh,
                 int64_t rank) {
  const std::vector<int64_t> coordinates = mesh.Coordinates(rank);
  Tensor part = whole;
  // Strided shards lie inside the others.
  for (const bool strided : {false, true}) {
    for (size_t axis = 0; axis < placements.size(); ++axis) {
      const Placement& p = placements[axis];
      if (p.kind != Placement::Kind::kShard || (p.split > 0) != strided) continue;
      part = PaddedChunk(part, p.dim, coordinates[axis], mesh.axes()[axis].size);
    }
  }
  return part.Copy();
}

bool AreComparable(const Module& module, std::span<const Placement> placements) {
  const bool are_norms = AreNorms(module, placements);
  return std::ranges::all_of(placements, [&](const Placement& p) {
    if (IsRows(p) || IsBlocked(p)) return false;
    if (!IsPartial(p)) return true;
    const std::string_view reduce = module.str(p.reduce);
    return are_norms ? reduce == "norm2" : reduce == "sum" || reduce == "avg";
  });
}

bool AreNorms(const Module& module, std::span<const Placement> placements) {
  return std::ranges::any_of(placements, [&](const Placement& p) {
    return IsPartial(p) && module.str(p.reduce) == "norm2";
  });
}

}  // namespace strata::prove
