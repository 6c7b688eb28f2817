#include "prove/foreign/contracts.h"

#include <algorithm>
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

/// Finds the relations under which sizes become those of a rank.
class CutSearch {
 public:
  CutSearch(const Sizes& local, const std::vector<bool>& is_stated, const Mesh& mesh)
      : local_(local), is_stated_(is_stated), mesh_(mesh) {}

  /// Cuts dimension `dim`, and those after it, along axes from `first` on: axes cut a dimension in
  /// their order.
  void CutFrom(size_t dim, size_t first, const Sizes& sizes, const Relation& relation) {
    if (dim == sizes.size()) {
      found_.push_back(relation);
    } else if (sizes[dim] == local_[dim]) {
      CutFrom(dim + 1, 0, sizes, relation);
    } else {
      for (size_t axis = first; axis < relation.size(); ++axis)
        Cut(dim, axis, sizes, relation);
    }
  }
  std::vector<Relation> Take() { return std::move(found_); }

 private:
  void Cut(size_t dim, size_t axis, Sizes sizes, Relation relation) {
    const int64_t parts = mesh_.axes()[axis].size;
    const bool is_free = !is_stated_[axis] && relation[axis].kind == Term::Kind::kReplicate;
    if (!is_free || sizes[dim] % parts != 0 || sizes[dim] / parts < local_[dim]) return;
    sizes[dim] /= parts;
    relation[axis] = {.kind = Term::Kind::kShard, .dim = static_cast<int64_t>(dim)};
    CutFrom(dim, axis + 1, sizes, relation);
  }

  const Sizes& local_;
  const std::vector<bool>& is_stated_;
  const Mesh& mesh_;
  std::vector<Relation> found_;
};

}  // namespace

Result<Candidates> CandidatesOf(const Sizes& whole, const Sizes& local, const DTensorSpec* spec,
                                const Mesh& mesh) {
  if (whole.size() != local.size())
    return Error(ErrorCode::kUnsupported, "{} dimensions on a rank, {} on one device", local.size(),
                 whole.size());
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
    if (relation[axis].kind != Term::Kind::kShard) continue;
    if (relation[axis].dim >= std::ssize(rest))
      return Error(ErrorCode::kInvalid, "a shard of dimension {} of {}", relation[axis].dim,
                   rest.size());
    int64_t& size = rest[static_cast<size_t>(relation[axis].dim)];
    if (size % mesh.axes()[axis].size != 0)
      return Error(ErrorCode::kUnsupported, "{} ranks do not divide a size of {} evenly",
                   mesh.axes()[axis].size, size);
    size /= mesh.axes()[axis].size;
  }
  Candidates candidates;
  candidates.is_stated = std::ranges::find(is_stated, false) == is_stated.end();
  CutSearch search(local, is_stated, mesh);
  search.CutFrom(0, 0, rest, relation);
  candidates.relations = search.Take();
  if (!candidates.relations.empty()) return candidates;
  return Error(ErrorCode::kUnsupported,
               "sizes [{}] on a rank, [{}] on one device, which no even "
               "cut explains",
               fmt::join(local, ", "), fmt::join(whole, ", "));
}

}  // namespace strata::prove
