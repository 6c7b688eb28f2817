#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "passes/placement/mesh.h"
#include "prove/foreign/program.h"

namespace strata::prove {

/// Process groups by name: a group has the ranks whose graphs name it. PyTorch gives each group a
/// name of its own, and a collective ends only when all of its ranks call it.
class NamedGroups {
 public:
  /// `graphs`: of each rank.
  void Add(std::span<const Graph* const> graphs);
  /// Errors: no rank names it.
  Result<std::vector<int64_t>> MembersOf(std::string_view name) const;
  const std::map<std::string, std::vector<int64_t>, std::less<>>& all() const { return members_; }

 private:
  std::map<std::string, std::vector<int64_t>, std::less<>> members_;
};

/// The mesh whose ranks wrote logs: axes that DTensors name, then those of which groups are rows.
/// What neither names is one more axis: `world` if it is the only one, `outer`,
/// `inner` or `middle` otherwise. Errors: axes that are not those of one grid.
Result<Mesh> MeshOfRanks(std::span<const MeshAxis> of_tensors, const NamedGroups& groups,
                         int64_t num_ranks);

}  // namespace strata::prove
