#include "prove/sizes/mesh_sizes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "prove/rank_inputs.h"

namespace strata::prove {

MeshSizes::MeshSizes(Mesh mesh, bool reduce, SizeConstraints& constraints)
    : mesh_(std::move(mesh)),
      constraints_(constraints),
      is_kept_(!reduce || mesh_.Find("ep") != nullptr) {
  for (const MeshAxis& axis : mesh_.axes()) {
    axes_.push_back(constraints.New(axis.size));
    if (is_kept_) constraints.Keep(axes_.back());
  }
  if (!is_kept_) constraints.SetLimit(axes_, kMaxRanks);
}

Result<SizeId> MeshSizes::OfGroup(std::string_view group) {
  if (const auto found = groups_.find(group); found != groups_.end()) return found->second;
  STRATA_TRY(const std::vector<MeshAxis> axes, mesh_.GroupAxes(group));
  std::vector<SizeId> parts;
  int64_t count = 1;
  for (const MeshAxis& axis : axes) {
    count *= axis.size;
    const auto found = std::ranges::find(mesh_.axes(), axis.name, &MeshAxis::name);
    if (found != mesh_.axes().end())
      parts.push_back(axes_[static_cast<size_t>(found - mesh_.axes().begin())]);
  }
  const SizeId size = constraints_.New(count);
  if (parts.size() == axes.size()) {
    constraints_.AddProduct(std::vector{size}, parts);
  } else {
    constraints_.Keep(size);  // an axis that is several of the grid
  }
  groups_.emplace(group, size);
  return size;
}

std::string MeshSizes::Text(const IdVector<SizeId, int64_t>& numbers) const {
  if (is_kept_) return mesh_.Text();
  std::string text;
  for (size_t i = 0; i < axes_.size(); ++i) {
    text += fmt::format("{}{}={}", i == 0 ? "" : ",", mesh_.axes()[i].name, numbers[axes_[i]]);
  }
  return text;
}

}  // namespace strata::prove
