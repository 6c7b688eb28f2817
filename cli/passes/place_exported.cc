#include "cli/passes/place_exported.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "passes/placement/costs/topology.h"
#include "passes/simulate/exported_placements.h"

namespace strata::cli {
namespace {

void PrintCosts(const ExportedPlacement::Costs& costs, std::string_view whose) {
  fmt::print("{:>14.3f}{:>14.3f}{:>14.3f}  {}\n", costs.us() / 1e3, costs.compute_us / 1e3,
             costs.communication_us / 1e3, whose);
}

void PrintDifferences(std::vector<ExportedPlacement::Item> items) {
  const auto difference = [](const ExportedPlacement::Item& item) {
    return std::abs(item.theirs_us - item.ours_us);
  };
  std::ranges::stable_sort(items, std::greater(), difference);
  constexpr size_t kShown = 20;
  fmt::print("\n{:>14}{:>14}  µs, the largest differences\n", "in the file", "here");
  for (size_t i = 0; i < items.size() && i < kShown; ++i) {
    const ExportedPlacement::Item& item = items[i];
    fmt::print("{:>14.3f}{:>14.3f}  {}\n", item.theirs_us, item.ours_us, item.what);
  }
}

}  // namespace

Result<bool> PrintExported(const PlaceFlags& flags) {
  STRATA_TRY(const std::string text, ReadFile(flags.source));
  if (!LooksLikeExportedPlacement(text)) return false;
  if (!flags.mesh.empty() || flags.world > 0)
    return Error("the file has a mesh: {}: leave out --mesh and --world", flags.source);
  STRATA_TRY(const Topology topology, Topology::Load(flags.topology));
  STRATA_TRY(ExportedPlacement exported, EvaluateExported(text, flags.source, topology));
  fmt::print("mesh {}, topology {}\n", exported.mesh, topology.name);
  fmt::print("{:>14}{:>14}{:>14}\n", "ms", "compute", "communication");
  PrintCosts(exported.theirs, "in the file");
  PrintCosts(exported.ours, "here");
  if (exported.num_unknown > 0)
    fmt::print("{} nodes have no shape or placement that is known here\n", exported.num_unknown);
  PrintDifferences(std::move(exported.items));
  return true;
}

}  // namespace strata::cli
