#include "passes/budget/recorded_times.h"

#include <functional>
#include <simdjson.h>
#include <utility>

#include "passes/memory/tags.h"

namespace strata {

Result<NodeTimes> ParseProfile(std::string_view json) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  std::string_view schema;
  int64_t steps = 0;
  simdjson::dom::array rows;
  const bool is_profile = parser.parse(json.data(), json.size()).get(root) == simdjson::SUCCESS &&
                          root["schema"].get(schema) == simdjson::SUCCESS &&
                          schema == "strata.profile/1" &&
                          root["steps"].get(steps) == simdjson::SUCCESS && steps > 0 &&
                          root["rows"].get(rows) == simdjson::SUCCESS;
  if (!is_profile) return Error("not a profile: write it with strata profile REF --json");
  NodeTimes times;
  for (const simdjson::dom::element row : rows) {
    std::string_view name;
    int64_t ns = 0;
    if (row["name"].get(name) != simdjson::SUCCESS || row["time_ns"].get(ns) != simdjson::SUCCESS)
      return Error(
          "a row of a profile has no name or time_ns: write it with strata profile REF "
          "--json");
    times[std::string(name)] = static_cast<double>(ns) / 1e3 / static_cast<double>(steps);
  }
  return times;
}

void UseTimes(const NodeTimes& times, const Graph& graph, MemoryCosts& costs) {
  double recorded = 0, modelled = 0;
  for (const NodeId node : graph.nodes()) {
    const auto time = times.find(graph.name(node));
    if (time == times.end() || costs.recompute_us[node] <= 0) continue;
    recorded += time->second;
    modelled += costs.recompute_us[node];
  }
  if (recorded <= 0 || modelled <= 0) return;
  const double scale = recorded / modelled;
  for (const NodeId node : graph.nodes()) {
    const auto time = times.find(graph.name(node));
    double& us = costs.recompute_us[node];
    us = time != times.end() && us > 0 ? time->second : us * scale;
  }
  costs.offload_us_per_byte *= scale;
}

}  // namespace strata
