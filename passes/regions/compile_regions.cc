#include "passes/regions/compile_regions.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "passes/regions/region_graph.h"
#include "passes/regions/region_writer.h"

namespace strata {
namespace {

/// Names of the entries of `inductor_configs` that a region can have.
constexpr std::string_view kKnownConfigs[] = {"reorder_for_peak_memory", "max_autotune",
                                              "wrap_inductor_compiled_regions"};

/// Entries that no compiler here knows. A region has the configuration of its first member.
Status CheckConfig(const Graph& graph, NodeId first) {
  std::string_view text = graph.attribute(first, kCompileAttribute);
  const size_t begin = text.find("'inductor_configs':");
  if (begin == std::string_view::npos) return Ok();
  text.remove_prefix(begin + std::string_view("'inductor_configs':").size());
  for (size_t at = text.find('\''); at != std::string_view::npos; at = text.find('\'')) {
    text.remove_prefix(at + 1);
    const size_t end = text.find('\'');
    if (end == std::string_view::npos) break;
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(end + 1);
    const size_t next = text.find_first_not_of(' ');
    if (next == std::string_view::npos || text[next] != ':') continue;  // a value
    if (std::ranges::find(kKnownConfigs, word) != std::end(kKnownConfigs)) continue;
    return Error("unknown entry '{}' of inductor_configs: node {}: it has {}", word,
                 graph.name(first), fmt::join(kKnownConfigs, ", "));
  }
  return Ok();
}

class RegionMaker {
 public:
  RegionMaker(Module& module, Graph& graph, int64_t min_nodes, int64_t& num_regions)
      : graph_(graph),
        min_nodes_(min_nodes),
        num_regions_(num_regions),
        regions_(graph),
        writer_(module, graph) {}

  Result<bool> Run() {
    for (const std::vector<NodeId>& members : regions_.regions())
      STRATA_RETURN_IF_ERROR(CheckConfig(graph_, members.front()));
    const bool any = std::ranges::any_of(regions_.regions(),
                                         [&](const auto& members) { return IsLarge(members); });
    if (!any) return false;
    for (const RegionGraph::Unit& unit : regions_.Schedule()) {
      if (unit.region < 0) {
        if (unit.node != graph_.output()) writer_.Append(unit.node);
        continue;
      }
      const std::vector<NodeId>& members = regions_.regions()[static_cast<size_t>(unit.region)];
      if (!IsLarge(members)) {
        std::ranges::for_each(members, [&](NodeId member) { writer_.Append(member); });
      } else if (writer_.Replace(members, fmt::format("region_{}", num_regions_))) {
        ++num_regions_;
      }
    }
    writer_.Finish();
    return true;
  }

 private:
  bool IsLarge(const std::vector<NodeId>& members) const {
    return static_cast<int64_t>(members.size()) >= min_nodes_;
  }

  Graph& graph_;
  int64_t min_nodes_;
  int64_t& num_regions_;
  RegionGraph regions_;
  RegionWriter writer_;
};

}  // namespace

Result<Changed> CompileRegions::Run(Module& module) {
  if (options_.serializable && options_.boxed)
    return Error("options contradict each other: serializable, boxed: take one of them out");
  bool changed = false;
  int64_t num_regions = 0;
  for (const GraphId id : module.programs()) {
    STRATA_TRY(const bool any,
               RegionMaker(module, module.graph(id), options_.min_nodes, num_regions).Run());
    changed = changed || any;
  }
  return Changed(changed);
}

}  // namespace strata
