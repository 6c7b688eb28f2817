#include "passes/placement/auto/meshes.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace strata {
namespace {

constexpr std::string_view kOrder[] = {"dp_replicate", "fsdp", "cp", "tp"};

std::string With(const std::string& mesh, std::string_view axis, int64_t size) {
  if (size == 1) return mesh;
  return fmt::format("{}{}{}={}", mesh, mesh.empty() ? "" : ",", axis, size);
}

/// Sizes of `axes` from the first on, which multiply to `ranks`, after what `mesh` has.
void AddMeshes(std::span<const std::string_view> axes, int64_t ranks, const std::string& mesh,
               std::vector<std::string>& meshes) {
  if (axes.size() <= 1) {
    if (!axes.empty() || ranks == 1)
      meshes.push_back(axes.empty() ? mesh : With(mesh, axes[0], ranks));
    return;
  }
  for (int64_t size = ranks; size >= 1; --size)
    if (ranks % size == 0)
      AddMeshes(axes.subspan(1), ranks / size, With(mesh, axes[0], size), meshes);
}

}  // namespace

std::vector<std::string> MeshesOf(int64_t ranks, std::span<const std::string> axes) {
  std::vector<std::string_view> ordered;
  for (const std::string_view axis : kOrder)
    if (std::ranges::count(axes, axis) != 0) ordered.push_back(axis);
  std::vector<std::string> grids;
  AddMeshes(ordered, ranks, "", grids);
  if (std::ranges::count(axes, "ep") == 0) return grids;
  std::vector<std::string> meshes;
  for (const std::string& grid : grids)
    for (int64_t experts = 1; experts <= ranks; ++experts)
      if (ranks % experts == 0) meshes.push_back(With(grid, "ep", experts));
  return meshes;
}

}  // namespace strata
