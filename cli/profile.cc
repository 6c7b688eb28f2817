#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "base/unicode.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/ref.h"
#include "ir/fingerprint.h"
#include "store/node_statistics.h"

namespace strata::cli {
namespace {

struct ProfileFlags {
  std::string ref, by = "node";
  int64_t top = 30;
  bool json = false;
};

Result<bool> ParseFlags(Args args, ProfileFlags& out) {
  Flags flags("profile",
              "shows per-node times and statistics recorded with train --profile and --values");
  flags.Positional("REF", &out.ref, "a graph of a run, T#graph=step");
  flags.Choice("--by", &out.by, {"node", "op", "module"}, "sum times by node, operator or module");
  flags.Option("--top", "N", &out.top, "number of rows; 0: all");
  flags.Switch("--json", &out.json, "print strata.profile/1");
  flags.Example("strata profile 't.strata#graph=step'");
  flags.Example("strata profile 't.strata#graph=step' --by module --top 10");
  return flags.Parse(args);
}

/// Nodes that are shown in one row.
struct Row {
  std::string name, op, module;
  NodeStatistics sum;
  int64_t nodes = 0;
};

Result<StatisticsTable> FindTable(const ProfileFlags& flags, const Graph& graph) {
  STRATA_TRY(const Ref ref, ParseRef(flags.ref));
  STRATA_TRY(const std::unique_ptr<TraceReader> trace, TraceReader::Open(ref.file));
  for (const StoredRun& run : trace->runs()) {
    if (ref.run && static_cast<int64_t>(run.id) != *ref.run) continue;
    STRATA_TRY(const std::vector<StatisticsTable> tables, LoadNodeStatistics(*trace, run));
    for (const StatisticsTable& table : tables) {
      if (table.fingerprint == FingerprintOf(graph)) return table;
    }
  }
  return Error("no times of this graph: {}: record them with strata train --profile N --trace",
               flags.ref);
}

std::vector<Row> RowsOf(const StatisticsTable& table, const Graph& graph, std::string_view by) {
  std::map<StableId, NodeId> nodes;
  for (const NodeId node : graph.nodes())
    nodes.emplace(graph.node(node).stable_id, node);
  std::map<std::string, Row> rows;
  for (const NodeStatistics& entry : table.nodes) {
    const auto found = nodes.find(entry.node);
    if (found == nodes.end()) continue;
    const NodeId node = found->second;
    Row row{.name = std::string(graph.name(node)),
            .op = std::string(graph.op(node)),
            .module = std::string(graph.module().str(graph.node(node).module)),
            .sum = entry,
            .nodes = 1};
    const std::string key = by == "op" ? row.op : by == "module" ? row.module : row.name;
    const auto [place, is_new] = rows.try_emplace(key, row);
    if (is_new) continue;
    place->second.sum.time_ns += entry.time_ns;
    place->second.sum.bytes += entry.bytes;
    ++place->second.nodes;
  }
  std::vector<Row> sorted;
  for (auto& [key, row] : rows) {
    if (by != "node") row.name = key;
    sorted.push_back(std::move(row));
  }
  std::ranges::stable_sort(sorted, std::greater<>(), [](const Row& r) { return r.sum.time_ns; });
  return sorted;
}

double Microseconds(const StatisticsTable& table, int64_t time_ns) {
  return static_cast<double>(time_ns) / 1e3 / static_cast<double>(table.steps);
}

/// Whether there are elements that least, greatest and mean are of.
bool HasFinite(const NodeStatistics& node) {
  return node.elements > node.nan_count + node.inf_count;
}

std::string ToText(const StatisticsTable& table, const std::vector<Row>& rows, bool by_node) {
  int64_t total = 0;
  size_t width = 4;
  for (const Row& row : rows) {
    total += row.sum.time_ns;
    width = std::max(width, DisplayWidth(Visible(row.name)));
  }
  const bool is_gapless = table.steps == table.last_step - table.first_step + 1;
  std::string text =
      fmt::format("graph {}, {}steps {} to {}: {:.1f} us a step\n\n", Visible(table.graph),
                  is_gapless ? "" : fmt::format("{} of ", table.steps), table.first_step,
                  table.last_step, Microseconds(table, total));
  text += fmt::format("{:<{}}  {:>9}  {:>6}  {:>12}{}\n", "", width, "us a step", "share", "bytes",
                      by_node ? "  operator, module" : "  nodes");
  for (const Row& row : rows) {
    text += fmt::format("{:<{}}  {:>9.1f}  {:>5.1f}%  {:>12}", Visible(row.name), width,
                        Microseconds(table, row.sum.time_ns),
                        100.0 * static_cast<double>(row.sum.time_ns) / static_cast<double>(total),
                        row.sum.bytes);
    text += by_node ? fmt::format("  {}  {}", Visible(row.op), Visible(row.module))
                    : fmt::format("  {}", row.nodes);
    if (by_node && row.sum.has_values) {
      if (HasFinite(row.sum)) {
        text += fmt::format("  min {:.4g}  max {:.4g}  mean {:.4g}", row.sum.min, row.sum.max,
                            row.sum.mean);
      }
      if (row.sum.nan_count > 0) text += fmt::format("  {} NaN", row.sum.nan_count);
      if (row.sum.inf_count > 0) text += fmt::format("  {} infinite", row.sum.inf_count);
    }
    text += '\n';
  }
  return text;
}

std::string ToJson(const StatisticsTable& table, const std::vector<Row>& rows) {
  std::string text;
  JsonWriter json(text);
  json.BeginObject().Field("schema", "strata.profile/1").Field("graph", table.graph);
  json.Field("fingerprint", ToString(table.fingerprint)).Field("first_step", table.first_step);
  json.Field("last_step", table.last_step).Field("steps", table.steps).Key("rows").BeginArray();
  for (const Row& row : rows) {
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

}  // namespace

Result<Exit> RunProfile(Args args) {
  ProfileFlags flags;
  STRATA_TRY(const bool go_on, ParseFlags(args, flags));
  if (!go_on) return Exit::kOk;
  STRATA_TRY(const Snapshot snapshot, LoadRef(flags.ref));
  STRATA_TRY(const StatisticsTable table, FindTable(flags, snapshot.graph()));
  std::vector<Row> rows = RowsOf(table, snapshot.graph(), flags.by);
  const auto shown = static_cast<size_t>(std::max<int64_t>(flags.top, 0));
  std::string text = flags.json ? ToJson(table, rows) : ToText(table, rows, flags.by == "node");
  if (!flags.json && shown > 0 && rows.size() > shown) {
    size_t end = 0;
    for (size_t line = 0; line < shown + 3; ++line)
      end = text.find('\n', end) + 1;
    text = text.substr(0, end) + fmt::format("… {} more\n", rows.size() - shown);
  }
  STRATA_RETURN_IF_ERROR(WriteFile("-", text));
  return Exit::kOk;
}

}  // namespace strata::cli
