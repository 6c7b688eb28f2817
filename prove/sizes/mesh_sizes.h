#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "passes/placement/mesh.h"
#include "prove/sizes/size_constraints.h"

namespace strata::prove {

/// Sizes of the axes of a mesh, and of groups of its ranks.
class MeshSizes {
 public:
  /// `reduce`: smaller meshes may take its place.
  MeshSizes(Mesh mesh, bool reduce, SizeConstraints& constraints);

  const Mesh& mesh() const { return mesh_; }
  /// Of `mesh().axes()[axis]`.
  SizeId OfAxis(size_t axis) const { return axes_[axis]; }
  /// How many ranks a group has. Errors: the mesh has no such group.
  Result<SizeId> OfGroup(std::string_view group);
  /// The mesh with numbers in the place of sizes, as Mesh::Text.
  Result<std::string> Text(const IdVector<SizeId, int64_t>& numbers) const;

 private:
  Mesh mesh_;
  SizeConstraints& constraints_;
  std::vector<SizeId> axes_;
  std::map<std::string, SizeId, std::less<>> groups_;
};

}  // namespace strata::prove
