#include "prove/foreign/rank_mesh.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/core/collectives.h"

namespace strata::prove {
namespace {

/// Sizes and strides say which ranks an axis joins, so equal ones are one axis.
void AddAxis(const MeshAxis& axis, std::vector<MeshAxis>& axes) {
  if (axis.size <= 1) return;
  const auto found = std::ranges::find_if(axes, [&](const MeshAxis& other) {
    return other.size == axis.size && other.stride == axis.stride;
  });
  if (found == axes.end()) {
    axes.push_back(axis);
  } else if (found->name.empty()) {
    found->name = axis.name;
  }
}

/// The axis of which a group is a row; of size 1: none, as of all ranks.
MeshAxis AxisOfGroup(const std::vector<int64_t>& members, int64_t num_ranks) {
  MeshAxis axis;
  if (members.size() < 2 || std::ssize(members) == num_ranks) return axis;
  axis.stride = members[1] - members[0];
  for (size_t i = 1; i < members.size(); ++i)
    if (members[i] - members[i - 1] != axis.stride) return {};
  axis.size = std::ssize(members);
  return axis;
}

/// All axes of the grid, the innermost first.
Result<std::vector<MeshAxis>> Completed(std::vector<MeshAxis> axes, int64_t num_ranks) {
  std::ranges::sort(axes, {}, &MeshAxis::stride);
  std::vector<MeshAxis> grid;
  int64_t stride = 1;
  const auto fill_up_to = [&](int64_t next) {
    if (next > stride) grid.push_back({.name = "", .size = next / stride, .stride = stride});
    stride = next;
  };
  for (const MeshAxis& axis : axes) {
    if (axis.stride * axis.size > num_ranks) {
      return Error(ErrorCode::kUnsupported,
                   "an axis of {} ranks, but logs of {}: give one of each rank",
                   axis.stride * axis.size, num_ranks);
    }
    if (axis.stride < stride || axis.stride % stride != 0 ||
        num_ranks % (axis.stride * axis.size) != 0)
      return Error(ErrorCode::kUnsupported, "axes of the logs' meshes are not those of one grid");
    fill_up_to(axis.stride);
    grid.push_back(axis);
    stride *= axis.size;
  }
  fill_up_to(num_ranks);
  return grid;
}

std::string_view NameOfUnnamed(size_t axis, size_t count) {
  if (count == 1) return "world";
  if (axis == 0) return "inner";
  return axis + 1 == count ? "outer" : "middle";
}

}  // namespace

void NamedGroups::Add(std::span<const Graph* const> graphs) {
  for (size_t rank = 0; rank < graphs.size(); ++rank) {
    const Graph& graph = *graphs[rank];
    for (const NodeId node : graph.nodes()) {
      const bool is_call = graph.node(node).kind == NodeKind::kCall;
      if (!is_call || !graph.op(node).starts_with("_c10d_functional.")) continue;
      const std::string_view group = GroupOf(graph, node);
      if (group.empty()) continue;
      std::vector<int64_t>& members = members_[std::string(group)];
      const auto self = static_cast<int64_t>(rank);
      if (std::ranges::find(members, self) == members.end()) members.push_back(self);
      std::ranges::sort(members);
    }
  }
}

Result<std::vector<int64_t>> NamedGroups::MembersOf(std::string_view name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) return Error(ErrorCode::kNotFound, "no group is named {}", name);
  return found->second;
}

Result<Mesh> MeshOfRanks(std::span<const MeshAxis> of_tensors, const NamedGroups& groups,
                         int64_t num_ranks) {
  std::vector<MeshAxis> axes;
  for (const MeshAxis& axis : of_tensors)
    AddAxis(axis, axes);
  for (const auto& [name, members] : groups.all())
    AddAxis(AxisOfGroup(members, num_ranks), axes);
  STRATA_TRY(const std::vector<MeshAxis> grid, Completed(std::move(axes), num_ranks));
  std::vector<std::string> texts;
  for (size_t axis = grid.size(); axis-- > 0;) {
    const std::string_view name =
        grid[axis].name.empty() ? NameOfUnnamed(axis, grid.size()) : grid[axis].name;
    texts.push_back(fmt::format("{}={}", name, grid[axis].size));
  }
  STRATA_TRY(Mesh mesh, Mesh::Parse(fmt::format("{}", fmt::join(texts, ","))));
  if (mesh.num_ranks() == num_ranks && mesh.axes().size() == grid.size()) return mesh;
  return Error(ErrorCode::kUnsupported, "a mesh {} of {} ranks", fmt::join(texts, ","), num_ranks);
}

}  // namespace strata::prove
