#include "prove/foreign/contracts.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace strata::prove {
namespace {

/// The axis of a mesh that is one of a DTensor's; none: there is no such axis.
std::optional<size_t> AxisIn(const Mesh& mesh, const MeshAxis& axis) {
  for (size_t i = 0; i < mesh.axes().size(); ++i) {
    const MeshAxis& other = mesh.axes()[i];
    if (other.size == axis.size && other.stride == axis.stride) return i;
  }
  return std::nullopt;
}

/// What a DTensor states of each axis of the mesh; none: nothing.
using Stated = std::vector<std::optional<Term>>;

Result<Stated> StatedBy(const DTensorSpec& spec, const Mesh& mesh) {
  Stated stated(mesh.axes().size());
  if (spec.terms.empty() && !spec.texts.empty())
    return Error(ErrorCode::kUnsupported, "a placement that is not known: {}",
                 fmt::join(spec.texts, ", "));
  for (size_t i = 0; i < spec.axes.size(); ++i) {
    if (spec.axes[i].size == 1) continue;
    const auto axis = AxisIn(mesh, spec.axes[i]);
    if (!axis) return Error(ErrorCode::kUnsupported, "a DTensor of another mesh");
    stated[*axis] = spec.terms[i];
  }
  return stated;
}

/// The sizes of dimension `dim` along an axis; empty: they differ along others, too, or do not add
/// up to `whole`.
Sizes PartsAlong(size_t axis, size_t dim, int64_t whole, std::span<const Sizes> local,
                 const Mesh& mesh) {
  Sizes parts(static_cast<size_t>(mesh.axes()[axis].size), -1);
  for (size_t rank = 0; rank < local.size(); ++rank) {
    int64_t& part = parts[static_cast<size_t>(mesh.Coordinates(static_cast<int64_t>(rank))[axis])];
    if (part >= 0 && part != local[rank][dim]) return {};
    part = local[rank][dim];
  }
  return std::accumulate(parts.begin(), parts.end(), int64_t{0}) == whole ? parts : Sizes();
}

bool IsEven(std::span<const Sizes> local, size_t dim) {
  return std::ranges::all_of(local,
                             [&](const Sizes& sizes) { return sizes[dim] == local.front()[dim]; });
}

/// Finds the relations under which sizes become those of the ranks.
class CutSearch {
 public:
  CutSearch(std::span<const Sizes> local, const std::vector<bool>& is_stated, const Mesh& mesh)
      : local_(local), is_stated_(is_stated), mesh_(mesh) {}

  /// Cuts dimension `dim`, and those after it, along axes from `first` on: axes cut a dimension in
  /// their order.
  void CutFrom(size_t dim, size_t first, const Sizes& sizes, const Relation& relation) {
    if (dim == sizes.size()) {
      found_.push_back(relation);
    } else if (sizes[dim] == local_[0][dim] && IsEven(local_, dim)) {
      CutFrom(dim + 1, 0, sizes, relation);
    } else if (sizes[dim] == kCut) {
      CutFrom(dim + 1, 0, sizes, relation);
    } else {
      for (size_t axis = first; axis < relation.size(); ++axis)
        Cut(dim, axis, sizes, relation);
    }
  }
  std::vector<Relation> Take() { return std::move(found_); }

  /// The size of a dimension that an axis cuts into parts that are not equal.
  static constexpr int64_t kCut = -1;

 private:
  void Cut(size_t dim, size_t axis, Sizes sizes, Relation relation) {
    if (is_stated_[axis] || relation[axis].kind != Term::Kind::kReplicate) return;
    const int64_t count = mesh_.axes()[axis].size, part = local_[0][dim];
    relation[axis] = {.kind = Term::Kind::kShard, .dim = static_cast<int64_t>(dim), .parts = {}};
    if (!IsEven(local_, dim)) {
      relation[axis].parts = PartsAlong(axis, dim, sizes[dim], local_, mesh_);
      if (relation[axis].parts.empty()) return;
      sizes[dim] = kCut;
    } else {
      if (sizes[dim] % count != 0 || sizes[dim] / count < part) return;
      sizes[dim] /= count;
    }
    CutFrom(dim, axis + 1, sizes, relation);
  }

  std::span<const Sizes> local_;
  const std::vector<bool>& is_stated_;
  const Mesh& mesh_;
  std::vector<Relation> found_;
};

/// Cuts `rest` as a DTensor states for an axis.
Status CutAsStated(size_t axis, std::span<const Sizes> local, const Mesh& mesh, Term& term,
                   Sizes& rest) {
  if (term.kind != Term::Kind::kShard) return Ok();
  const auto dim = static_cast<size_t>(term.dim);
  if (dim >= rest.size())
    return Error(ErrorCode::kInvalid, "a shard of dimension {} of {}", dim, rest.size());
  const int64_t count = mesh.axes()[axis].size;
  if (!IsEven(local, dim)) {
    term.parts = PartsAlong(axis, dim, rest[dim], local, mesh);
    if (!term.parts.empty()) rest[dim] = CutSearch::kCut;
  }
  if (rest[dim] == CutSearch::kCut) return Ok();
  if (rest[dim] % count != 0)
    return Error(ErrorCode::kUnsupported, "{} ranks do not divide a size of {} evenly", count,
                 rest[dim]);
  rest[dim] /= count;
  return Ok();
}

}  // namespace

Result<Candidates> CandidatesOf(const Sizes& whole, std::span<const Sizes> local,
                                const DTensorSpec* spec, const Mesh& mesh) {
  for (const Sizes& sizes : local) {
    if (whole.size() == sizes.size()) continue;
    return Error(ErrorCode::kUnsupported, "{} dimensions on a rank, {} on one device", sizes.size(),
                 whole.size());
  }
  Stated stated(mesh.axes().size());
  if (spec != nullptr) {
    STRATA_TRY(stated, StatedBy(*spec, mesh));
  }
  Sizes rest = whole;
  Relation relation(mesh.axes().size());
  std::vector<bool> is_stated(mesh.axes().size(), false);
  for (size_t axis = 0; axis < stated.size(); ++axis) {
    if (!stated[axis]) continue;
    relation[axis] = *stated[axis];
    is_stated[axis] = true;
    STRATA_RETURN_IF_ERROR(CutAsStated(axis, local, mesh, relation[axis], rest));
  }
  Candidates candidates;
  candidates.is_stated = std::ranges::find(is_stated, false) == is_stated.end();
  CutSearch search(local, is_stated, mesh);
  search.CutFrom(0, 0, rest, relation);
  candidates.relations = search.Take();
  if (!candidates.relations.empty()) return candidates;
  std::vector<std::string> texts;
  for (const Sizes& sizes : local)
    texts.push_back(fmt::format("[{}]", fmt::join(sizes, ", ")));
  texts.erase(std::ranges::unique(texts).begin(), texts.end());
  return Error(ErrorCode::kUnsupported,
               "sizes {} on ranks, [{}] on one device, which no cut explains",
               fmt::join(texts, ", "), fmt::join(whole, ", "));
}

}  // namespace strata::prove
