#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "store/node_statistics.h"

namespace strata::cli {

/// Times and bytes of one node, or summed over the nodes of one operator or module.
struct ProfileRow {
  std::string name, op, module;
  NodeStatistics sum;
  int64_t nodes = 0;
};

/// One row per node, operator or module (`by`), by falling time.
std::vector<ProfileRow> ProfileRows(const StatisticsTable& table, const Graph& graph,
                                    std::string_view by);

/// Puts a row where its time belongs.
void AddRow(ProfileRow row, std::vector<ProfileRow>& rows);

/// The rows as a table for people: the first `shown`, 0: all.
std::string ProfileText(const StatisticsTable& table, const std::vector<ProfileRow>& rows,
                        bool by_node, size_t shown);

/// All rows as `strata.profile/1` (docs/json.md).
std::string ProfileJson(const StatisticsTable& table, const std::vector<ProfileRow>& rows);

}  // namespace strata::cli
