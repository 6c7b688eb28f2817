#include "cli/render/profile_table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/unicode.h"
#include "diff/graph/listing.h"
#include "diff/match/labels.h"
#include "diff/pattern/layers.h"
#include "ir/fingerprint.h"

namespace strata::cli {
namespace {

double Microseconds(const StatisticsTable& table, int64_t time_ns) {
  return static_cast<double>(time_ns) / 1e3 / static_cast<double>(table.steps);
}

/// Whether minimum, maximum and mean exist: they are those of the finite elements.
bool HasFinite(const NodeStatistics& node) {
  return node.elements > node.nan_count + node.inf_count;
}

/// Which columns of the table have anything to show, and how wide the first one is.
struct Columns {
  size_t width = 4;
  bool by_node = false, has_bytes = false;
};

std::string TableHead(const StatisticsTable& table, int64_t total_ns, const Columns& columns) {
  const bool is_gapless = table.steps == table.last_step - table.first_step + 1;
  std::string text =
      fmt::format("graph {}, {}steps {} to {}: {:.1f} us a step\n\n", Visible(table.graph),
                  is_gapless ? "" : fmt::format("{} of ", table.steps), table.first_step,
                  table.last_step, Microseconds(table, total_ns));
  text += fmt::format("{:<{}}  {:>9}  {:>6}", "", columns.width, "us a step", "share");
  if (columns.has_bytes) text += fmt::format("  {:>12}", "bytes");
  return text + (columns.by_node ? "  operator, module\n" : "  nodes\n");
}

/// `  min -1  max 2  mean 0.5  3 NaN`; empty without recorded values.
std::string Values(const NodeStatistics& node) {
  std::string text;
  if (!node.has_values) return text;
  if (HasFinite(node)) {
    text += fmt::format("  min {:.4g}  max {:.4g}  mean {:.4g}", node.min, node.max, node.mean);
  }
  if (node.nan_count > 0) text += fmt::format("  {} NaN", node.nan_count);
  if (node.inf_count > 0) text += fmt::format("  {} infinite", node.inf_count);
  return text;
}

}  // namespace

std::vector<ProfileRow> ProfileRows(const StatisticsTable& table, const Graph& graph,
                                    std::string_view by) {
  std::map<StableId, NodeId> nodes;
  for (const NodeId node : graph.nodes())
    nodes.emplace(graph.node(node).stable_id, node);
  const Listing listing(graph);
  const Layers layers(listing, Labels(listing, KnownTypeFields(listing)));
  std::map<std::string, ProfileRow> rows;
  for (const NodeStatistics& entry : table.nodes) {
    const auto found = nodes.find(entry.node);
    if (found == nodes.end()) continue;
    const NodeId node = found->second;
    ProfileRow row{.name = std::string(graph.name(node)),
                   .op = std::string(graph.op(node)),
                   .module = std::string(layers.path(listing.Find(graph.id(), node))),
                   .sum = entry,
                   .nodes = 1};
    const std::string key = by == "op" ? row.op : by == "module" ? row.module : row.name;
    const auto [place, is_new] = rows.try_emplace(key, row);
    if (is_new) continue;
    place->second.sum.time_ns += entry.time_ns;
    place->second.sum.bytes += entry.bytes;
    ++place->second.nodes;
  }
  std::vector<ProfileRow> sorted;
  for (auto& [key, row] : rows) {
    if (by != "node") row.name = key;
    sorted.push_back(std::move(row));
  }
  std::ranges::stable_sort(sorted, std::greater<>(),
                           [](const ProfileRow& r) { return r.sum.time_ns; });
  return sorted;
}

void AddRow(ProfileRow row, std::vector<ProfileRow>& rows) {
  const auto place = std::ranges::find_if(
      rows, [&](const ProfileRow& other) { return other.sum.time_ns < row.sum.time_ns; });
  rows.insert(place, std::move(row));
}

std::string ProfileText(const StatisticsTable& table, const std::vector<ProfileRow>& rows,
                        bool by_node, size_t shown) {
  int64_t total_ns = 0;
  Columns columns{.by_node = by_node};
  for (const ProfileRow& row : rows) {
    total_ns += row.sum.time_ns;
    columns.width = std::max(columns.width, DisplayWidth(Visible(row.name)));
    columns.has_bytes = columns.has_bytes || row.sum.bytes > 0;
  }
  std::string text = TableHead(table, total_ns, columns);
  const size_t end = shown == 0 ? rows.size() : std::min(shown, rows.size());
  for (const ProfileRow& row : std::span(rows).first(end)) {
    text += fmt::format("{:<{}}  {:>9.1f}  {:>5.1f}%", Visible(row.name), columns.width,
                        Microseconds(table, row.sum.time_ns),
                        100.0 * static_cast<double>(row.sum.time_ns) /
                            static_cast<double>(std::max<int64_t>(total_ns, 1)));
    if (columns.has_bytes) text += fmt::format("  {:>12}", row.sum.bytes);
    text += by_node
                ? fmt::format("  {}  {}{}\n", Visible(row.op), Visible(row.module), Values(row.sum))
                : fmt::format("  {}\n", row.nodes);
  }
  if (end < rows.size()) text += fmt::format("… {} more\n", rows.size() - end);
  return text;
}

std::string ProfileJson(const StatisticsTable& table, const std::vector<ProfileRow>& rows) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject().Field("schema", "strata.profile/1").Field("graph", table.graph);
  json.Field("fingerprint", ToString(table.fingerprint)).Field("first_step", table.first_step);
  json.Field("last_step", table.last_step).Field("steps", table.steps).Key("rows").BeginArray();
  for (const ProfileRow& row : rows) {
    json.Break(2).BeginObject().Field("name", row.name).Field("nodes", row.nodes);
    json.Field("time_ns", row.sum.time_ns).Field("bytes", row.sum.bytes);
    if (row.nodes == 1 && row.sum.has_values) {
      json.Field("elements", row.sum.elements).Field("nan_count", row.sum.nan_count);
      json.Field("inf_count", row.sum.inf_count);
      for (const auto& [key, value] :
           {std::pair{"min", row.sum.min}, {"max", row.sum.max}, {"mean", row.sum.mean}}) {
        json.Key(key);
        if (HasFinite(row.sum)) {
          json.Double(value);
        } else {
          json.Null();
        }
      }
    }
    json.EndObject();
  }
  json.EndArray().EndObject();
  return text + "\n";
}

}  // namespace strata::cli
