#include "passes/core/node_times.h"

#include <cstdint>
#include <simdjson.h>
#include <utility>

#include "base/file.h"

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

Result<NodeTimes> ReadProfile(const std::string& path) {
  STRATA_TRY(const std::string text, ReadFile(path));
  Result<NodeTimes> times = ParseProfile(text);
  if (!times) return std::move(times).error().In(path);
  return times;
}

}  // namespace strata
