#include "store/node_statistics.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace strata {
namespace {

constexpr std::string_view kKind = "node_statistics", kOfOtherRanks = "rank_statistics";
constexpr std::string_view kColumns =
    "node\tcalls\ttime_ns\tbytes\thas_values\telements\tnan_count\tinf_count\tmin\tmax\tmean\n";
constexpr std::string_view kRest = "rest\t";

/// A name in one field.
std::string OneField(std::string name) {
  std::ranges::replace_if(name, [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return name;
}

/// Takes fields and lines off a text.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text) : rest_(text) {}

  std::string_view Take() {
    const size_t end = rest_.find_first_of("\t\n");
    const std::string_view field = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    return field;
  }
  template <class T>
  T Number() {
    const std::string_view field = Take();
    T number{};
    const auto read = std::from_chars(field.data(), field.data() + field.size(), number);
    is_sound_ = is_sound_ && read.ec == std::errc() && read.ptr == field.data() + field.size();
    return number;
  }
  bool IsAt(std::string_view text) const { return rest_.starts_with(text); }
  bool Skip(std::string_view text) {
    if (!rest_.starts_with(text)) return is_sound_ = false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool is_sound() const { return is_sound_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool is_sound_ = true;
};

std::optional<StatisticsTable> Parse(std::string_view text) {
  FieldReader reader(text);
  StatisticsTable table;
  if (!reader.Skip("strata.node-statistics/1\t")) return std::nullopt;
  table.graph = reader.Take();
  const std::optional<Fingerprint> fingerprint = FingerprintFromString(reader.Take());
  if (!fingerprint) return std::nullopt;
  table.fingerprint = *fingerprint;
  table.first_step = reader.Number<int64_t>();
  table.last_step = reader.Number<int64_t>();
  // Older traces have only tables of steps that follow each other.
  table.steps =
      reader.IsAt(kColumns) ? table.last_step - table.first_step + 1 : reader.Number<int64_t>();
  if (!reader.IsAt(kColumns)) table.rank = reader.Number<int32_t>();
  reader.Skip(kColumns);
  while (reader.is_sound() && !reader.at_end() && !reader.IsAt(kRest)) {
    NodeStatistics node;
    node.node = static_cast<StableId>(reader.Number<uint64_t>());
    node.calls = reader.Number<int64_t>();
    node.time_ns = reader.Number<int64_t>();
    node.bytes = reader.Number<int64_t>();
    node.has_values = reader.Number<int64_t>() != 0;
    node.elements = reader.Number<int64_t>();
    node.nan_count = reader.Number<int64_t>();
    node.inf_count = reader.Number<int64_t>();
    node.min = reader.Number<double>();
    node.max = reader.Number<double>();
    node.mean = reader.Number<double>();
    table.nodes.push_back(node);
  }
  while (reader.is_sound() && !reader.at_end()) {
    reader.Skip(kRest);
    StatisticsTable::Rest& rest = table.rest.emplace_back();
    rest.time_ns = reader.Number<int64_t>();
    rest.name = reader.Take();
  }
  if (!reader.is_sound() || table.steps < 1) return std::nullopt;
  return table;
}

std::string Print(const StatisticsTable& table) {
  std::string text =
      fmt::format("strata.node-statistics/1\t{}\t{}\t{}\t{}\t{}{}\n{}", table.graph,
                  ToString(table.fingerprint), table.first_step, table.last_step, table.steps,
                  table.rank > 0 ? fmt::format("\t{}", table.rank) : "", kColumns);
  for (const NodeStatistics& node : table.nodes) {
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
                        static_cast<uint64_t>(node.node), node.calls, node.time_ns, node.bytes,
                        node.has_values ? 1 : 0, node.elements, node.nan_count, node.inf_count,
                        node.min, node.max, node.mean);
  }
  for (const StatisticsTable::Rest& rest : table.rest)
    text += fmt::format("{}{}\t{}\n", kRest, rest.time_ns, OneField(rest.name));
  return text;
}

Status LoadOfKind(TraceReader& trace, const StoredRun& run, std::string_view kind,
                  std::vector<StatisticsTable>& tables) {
  for (const ArtifactInfo& artifact : run.artifacts) {
    if (artifact.kind != kind) continue;
    STRATA_TRY(const std::string text, trace.LoadArtifact(artifact.id));
    std::optional<StatisticsTable> table = Parse(text);
    if (!table) {
      return Error(ErrorCode::kCorrupt,
                   "damaged node statistics: {}: artifact {}; record the run anew", trace.path(),
                   artifact.name);
    }
    tables.push_back(*std::move(table));
  }
  return Ok();
}

}  // namespace

Status AddNodeStatistics(TraceWriter& trace, RunId run, const StatisticsTable& table) {
  const auto added = trace.AddArtifact(run, table.graph + ".nodes.tsv", kKind, Print(table));
  return added ? Ok() : Status(added.error());
}

Status AddRankStatistics(TraceWriter& trace, RunId run, const StatisticsTable& table) {
  const std::string name = fmt::format("{}.rank{}.nodes.tsv", table.graph, table.rank);
  const auto added = trace.AddArtifact(run, name, kOfOtherRanks, Print(table));
  return added ? Ok() : Status(added.error());
}

Result<std::vector<StatisticsTable>> LoadNodeStatistics(TraceReader& trace, const StoredRun& run) {
  std::vector<StatisticsTable> tables;
  STRATA_RETURN_IF_ERROR(LoadOfKind(trace, run, kKind, tables));
  return tables;
}

Result<std::vector<StatisticsTable>> LoadRankStatistics(TraceReader& trace, const StoredRun& run) {
  std::vector<StatisticsTable> tables;
  STRATA_RETURN_IF_ERROR(LoadOfKind(trace, run, kOfOtherRanks, tables));
  if (!tables.empty()) STRATA_RETURN_IF_ERROR(LoadOfKind(trace, run, kKind, tables));
  return tables;
}

}  // namespace strata
