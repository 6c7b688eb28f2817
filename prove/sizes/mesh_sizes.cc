#include "prove/sizes/mesh_sizes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "prove/evaluation/rank_inputs.h"

namespace strata::prove {

MeshSizes::MeshSizes(Mesh mesh, bool reduce, SizeConstraints& constraints)
    : mesh_(std::move(mesh)), constraints_(constraints) {
  for (const MeshAxis& axis : mesh_.axes()) {
    axes_.push_back(constraints.New(axis.size));
    constraints.CountRanks(axes_.back());
    if (!reduce) constraints.Keep(axes_.back());
  }
  if (reduce) constraints.SetLimit(axes_, kMaxRanks);
}

Result<SizeId> MeshSizes::OfGroup(std::string_view group) {
  if (const auto found = groups_.find(group); found != groups_.end()) return found->second;
  STRATA_TRY(const std::vector<MeshAxis> axes, mesh_.GroupAxes(group));
  std::vector<SizeId> parts;
  int64_t count = 1;
  for (const MeshAxis& axis : axes) {
    count *= axis.size;
    for (const size_t part : mesh_.PartsOf(axis.name))
      parts.push_back(axes_[part]);
  }
  const SizeId size = constraints_.New(count);
  constraints_.CountRanks(size);
  constraints_.AddProduct(std::vector{size}, parts);
  groups_.emplace(group, size);
  return size;
}

Result<std::string> MeshSizes::Text(const IdVector<SizeId, int64_t>& numbers) const {
  std::string text;
  for (const std::string_view axis : mesh_.Names()) {
    int64_t size = 1;
    for (const size_t part : mesh_.PartsOf(axis))
      size *= numbers[axes_[part]];
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis, size);
  }
  // The experts' ranks border on the same axis: inner axes have more than one rank then as before.
  STRATA_TRY(const Mesh reduced, Mesh::Parse(text));
  bool is_same_grid = reduced.axes().size() == axes_.size();
  for (size_t i = 0; i < axes_.size() && is_same_grid; ++i) {
    const MeshAxis& axis = reduced.axes()[i];
    is_same_grid = axis.name == mesh_.axes()[i].name && axis.size == numbers[axes_[i]];
  }
  if (is_same_grid) return text;
  return Error(ErrorCode::kUnsupported, "mesh {} is another grid than {}", text, mesh_.Text());
}

}  // namespace strata::prove
