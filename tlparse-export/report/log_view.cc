#include "tlparse-export/report/log_view.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/selector.h"
#include "base/text.h"
#include "tlparse-export/report/pack.h"
#include "tlparse-export/report/stored_envelope.h"
#include "tlparse-export/torch_trace/export/stored_records.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

constexpr size_t kPartBytes = size_t{256} << 10;
constexpr size_t kMaxRows = 20'000, kMaxEvents = 100'000;
constexpr std::string_view kSchedule = "inductor_collective_schedule";
constexpr size_t kMaxMetadata = size_t{64} << 10, kMaxName = 2000;

/// Where a payload stands.
struct Place {
  int64_t part = -1, slot = -1;
};

struct Row {
  StoredRecord record;
  std::string metadata;
  std::string ref;
  std::string sum;  // the beginning of the payload's md5, as the log states it
  int64_t nodes = 0, bytes = -1, count = 1;
  Place place;
};

std::string Cut(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  return std::string(text.substr(0, max_bytes)) + "…";
}

std::string Size(int64_t bytes) {
  constexpr int64_t kMega = 1 << 20;
  if (bytes >= kMega) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kMega);
  return fmt::format("{} KiB", (bytes + 1023) / 1024);
}

class LogViewMaker {
 public:
  LogViewMaker(TraceReader& trace, const StoredRun& run, size_t max_bytes)
      : trace_(trace),
        run_(run),
        left_bytes_(static_cast<int64_t>(max_bytes)),
        several_runs_(trace.runs().size() > 1) {}

  Result<LogView> Make() {
    STRATA_RETURN_IF_ERROR(CollectRows());
    if (rows_.empty() && events_.empty()) return std::move(view_);
    STRATA_RETURN_IF_ERROR(CollectFacts());
    // The list of records is what makes the others readable: room for it comes first.
    STRATA_TRY(const std::string draft, Pack(Index()));
    if (static_cast<int64_t>(draft.size()) > left_bytes_) {
      view_.left_out = {fmt::format("run {}, its log: {} records", static_cast<int64_t>(run_.id),
                                    rows_.size() + events_.size())};
      return std::move(view_);
    }
    left_bytes_ -= static_cast<int64_t>(draft.size());
    STRATA_RETURN_IF_ERROR(PackEvents());
    STRATA_RETURN_IF_ERROR(PackPayloads());
    STRATA_TRY(std::string index, Pack(Index()));
    view_.parts.insert(view_.parts.begin(), {Id(""), std::move(index)});
    return std::move(view_);
  }

 private:
  std::string Id(std::string_view suffix) const {
    return fmt::format("log-{}{}", static_cast<int64_t>(run_.id), suffix);
  }

  std::string Title(const StoredRecord& record) const {
    const std::string where = record.compile.empty() ? "" : fmt::format(" of [{}]", record.compile);
    return fmt::format("run {}, record {}{}", static_cast<int64_t>(run_.id),
                       OneLine(record.name, 120), where);
  }

  Status CollectRows() {
    STRATA_TRY(std::vector<StoredRecord> records, ReadStoredRecords(trace_, run_));
    if (records.empty()) return CollectArtifacts();
    FindRefs();
    STRATA_RETURN_IF_ERROR(LoadStrings());
    std::map<std::pair<std::string, std::string>, size_t> groups;  // rows, by compilation and kind
    std::map<std::string, int64_t> too_many;
    for (StoredRecord& record : records) {
      if (record.kind == "chromium_event") {
        events_.push_back(std::move(record));
        continue;
      }
      const auto envelope = ReadJsonObject(record.envelope).value_or(std::vector<JsonField>{});
      std::string metadata = MetadataOf(record, envelope);
      if (IsDescription(record.kind)) {
        const auto [group, is_new] =
            groups.try_emplace({record.compile, record.kind}, rows_.size());
        if (!is_new) {
          Row& row = rows_[group->second];
          ++row.count;
          row.record.text += metadata + "\n";
          row.bytes = static_cast<int64_t>(row.record.text.size());
          continue;
        }
        record.text = metadata + "\n";
        record.has_payload = true;
        metadata.clear();
      }
      if (rows_.size() >= kMaxRows) {
        ++too_many[record.kind];
        continue;
      }
      AddRow(std::move(record), std::move(metadata),
             ReadJsonString(EnvelopeField(envelope, "has_payload")).value_or("").substr(0, 8));
    }
    for (const auto& [kind, count] : too_many) {
      view_.left_out.push_back(
          fmt::format("run {}, {} records of kind {}", static_cast<int64_t>(run_.id), count, kind));
    }
    return Ok();
  }

  Status LoadStrings() {
    for (const ArtifactInfo& artifact : run_.artifacts) {
      if (artifact.kind != "strings") continue;
      STRATA_TRY(strings_, trace_.LoadArtifact(artifact.id));
    }
    return Ok();
  }

  void AddRow(StoredRecord record, std::string metadata, std::string sum) {
    Row row;
    row.sum = std::move(sum);
    if (metadata.size() > kMaxMetadata) {
      view_.left_out.push_back(fmt::format("{}: {} of metadata", Title(record),
                                           Size(static_cast<int64_t>(metadata.size()))));
      metadata.clear();
    }
    row.metadata = std::move(metadata);
    if (const SnapshotInfo* snapshot = trace_.FindSnapshot(record.snapshot)) {
      row.nodes = snapshot->nodes;
      row.ref = RefOf(record, *snapshot);
    } else if (record.artifact != ArtifactId::kNone) {
      row.bytes = bytes_of_[record.artifact];
    } else if (record.has_payload) {
      row.bytes = static_cast<int64_t>(record.text.size());
    }
    if (!row.ref.empty() && record.artifact != ArtifactId::kNone) {
      row.bytes = bytes_of_[record.artifact];
    }
    row.record = std::move(record);
    rows_.push_back(std::move(row));
  }

  /// Which pass begins or ends with a record's graph.
  void FindRefs() {
    for (const ArtifactInfo& artifact : run_.artifacts)
      bytes_of_[artifact.id] = artifact.bytes;
    for (const StoredPass& pass : run_.passes) {
      const PassRecord& record = pass.record;
      const std::string ref = fmt::format("run={},graph={},pass={}", static_cast<int64_t>(run_.id),
                                          SelectorValue(record.graph), record.index);
      refs_.try_emplace({record.before, record.graph, "before_" + record.name}, ref + ":before");
      refs_.try_emplace({record.after, record.graph, "after_" + record.name}, ref + ":after");
    }
  }

  std::string RefOf(const StoredRecord& record, const SnapshotInfo& snapshot) const {
    const auto pass = refs_.find({record.snapshot, snapshot.graph, record.name});
    if (pass != refs_.end()) return pass->second;
    return fmt::format("run={},graph={}", static_cast<int64_t>(run_.id),
                       SelectorValue(snapshot.graph));
  }

  Status CollectArtifacts() {
    for (const ArtifactInfo& artifact : run_.artifacts) {
      Row row;
      row.record.name = artifact.name;
      row.record.kind = artifact.kind;
      row.record.artifact = artifact.id;
      row.record.has_payload = true;
      row.metadata = artifact.attributes;
      row.bytes = artifact.bytes;
      rows_.push_back(std::move(row));
    }
    return Ok();
  }

  /// How compilations ended, and what of them is compared.
  Status CollectFacts() {
    LogFacts& facts = view_.facts;
    facts.run = static_cast<int64_t>(run_.id);
    facts.rank = run_.info.rank;
    std::map<std::string, size_t> index;
    struct Collectives {
      std::vector<const StoredRecord*> schedules, code;
    };
    std::map<std::string, Collectives> collectives;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Row& row = rows_[i];
      const StoredRecord& record = row.record;
      const std::string id = record.compile.empty() ? "-" : record.compile;
      const auto [at, is_new] = index.try_emplace(id, facts.compiles.size());
      if (is_new) facts.compiles.push_back({.id = id, .status = {}, .caches = {}, .schedule = {}});
      LogCompile& compile = facts.compiles[at->second];
      ++compile.records;
      if (record.kind == "compilation_metrics") JudgeByMetrics(row.metadata, compile);
      if (const std::string word = CacheWord(record.name); !word.empty())
        compile.caches.push_back(word);
      if (record.name == kSchedule) {
        compile.schedule += row.sum;
        collectives[id].schedules.push_back(&record);
      } else if (record.kind == "inductor_output_code") {
        collectives[id].code.push_back(&record);
      }
      if (several_runs_) STRATA_RETURN_IF_ERROR(CollectRankFacts(row, static_cast<int64_t>(i)));
    }
    JudgeAttempts(facts.compiles);
    for (const auto& [id, records] : collectives) {
      if (records.schedules.empty()) continue;  // most compilations have none: nothing to read
      STRATA_TRY(const std::vector<std::string> schedules, PayloadsOf(records.schedules));
      STRATA_TRY(const std::vector<std::string> code, PayloadsOf(records.code));
      for (LogTable& table : CollectivesTable(schedules, code))
        tables_.emplace_back(id, std::move(table));
    }
    return Ok();
  }

  Result<std::vector<std::string>> PayloadsOf(const std::vector<const StoredRecord*>& records) {
    std::vector<std::string> payloads;
    for (const StoredRecord* record : records) {
      STRATA_TRY(payloads.emplace_back(), PayloadOf(*record));
    }
    return payloads;
  }

  Status CollectRankFacts(const Row& row, int64_t place) {
    LogFacts& facts = view_.facts;
    const StoredRecord& record = row.record;
    if (!row.sum.empty()) facts.payloads.push_back({record.compile, record.name, row.sum, place});
    const bool is_order = record.name == "graph_execution" && facts.order.empty();
    if (!is_order && !record.name.starts_with("inductor_runtime")) return Ok();
    STRATA_TRY(const std::string payload, PayloadOf(record));
    const auto fields = ReadJsonObject(payload).value_or(std::vector<JsonField>{});
    const std::string_view list = EnvelopeField(fields, is_order ? "graph_execution_order" : "ops");
    for (std::string_view entry : ReadJsonArray(list).value_or(std::vector<std::string_view>{})) {
      const auto own = ReadJsonObject(entry).value_or(std::vector<JsonField>{});
      if (is_order) {
        facts.order.push_back(ReadJsonString(EnvelopeField(own, "compile_id")).value_or("–"));
      } else {
        const std::string ns(EnvelopeField(own, "estimated_runtime_ns"));
        facts.expected_ms[record.compile] += std::strtod(ns.c_str(), nullptr) / 1e6;
      }
    }
    return Ok();
  }

  Status PackEvents() {
    if (events_.empty()) return Ok();
    std::string text;
    JsonWriter json(text);
    json.BeginArray();
    for (size_t i = 0; i < std::min(events_.size(), kMaxEvents); ++i)
      json.String(events_[i].text);
    json.EndArray();
    STRATA_TRY(std::string packed, Pack(text));
    const auto size = static_cast<int64_t>(packed.size());
    const size_t shown = size > left_bytes_ ? 0 : std::min(events_.size(), kMaxEvents);
    if (shown > 0) {
      left_bytes_ -= size;
      view_.parts.push_back({Id("-events"), std::move(packed)});
    }
    if (shown < events_.size()) {
      view_.left_out.push_back(fmt::format("run {}, {} of {} chromium events",
                                           static_cast<int64_t>(run_.id), events_.size() - shown,
                                           events_.size()));
    }
    return Ok();
  }

  Status PackPayloads() {
    std::vector<Row*> order;
    for (Row& row : rows_) {
      if (row.bytes >= 0) order.push_back(&row);
    }
    std::ranges::stable_sort(order, {}, &Row::bytes);
    for (size_t begin = 0; begin < order.size();) {
      size_t end = begin;
      std::string text;
      JsonWriter json(text);
      json.BeginArray();
      int64_t slot = 0;
      for (; end < order.size() && text.size() < kPartBytes; ++end) {
        Row& row = *order[end];
        const ArtifactId artifact = row.record.artifact;
        if (const auto place = places_.find(artifact);
            artifact != ArtifactId::kNone && place != places_.end()) {
          row.place = place->second;
          continue;
        }
        row.place = {next_part_, slot++};
        if (artifact != ArtifactId::kNone) places_[artifact] = row.place;
        STRATA_TRY(const std::string payload, PayloadOf(row.record));
        json.String(payload);
      }
      json.EndArray();
      if (slot > 0) STRATA_RETURN_IF_ERROR(AddPart(text, order, begin, end));
      begin = end;
    }
    return Ok();
  }

  Result<std::string> PayloadOf(const StoredRecord& record) {
    if (record.artifact != ArtifactId::kNone) return trace_.LoadArtifact(record.artifact);
    return record.text;
  }

  Status AddPart(const std::string& text, const std::vector<Row*>& order, size_t begin,
                 size_t end) {
    STRATA_TRY(std::string packed, Pack(text));
    const auto size = static_cast<int64_t>(packed.size());
    if (size <= left_bytes_) {
      left_bytes_ -= size;
      view_.parts.push_back({Id(fmt::format("-{}", next_part_++)), std::move(packed)});
      return Ok();
    }
    for (size_t i = begin; i < end; ++i) {
      if (order[i]->place.part != next_part_) continue;
      order[i]->place = places_[order[i]->record.artifact] = {};
      view_.left_out.push_back(
          fmt::format("{}: {}", Title(order[i]->record), Size(order[i]->bytes)));
    }
    ++next_part_;
    return Ok();
  }

  std::string Index() const {
    std::string out;
    JsonWriter json(out);
    json.BeginObject().Field("events", static_cast<int64_t>(events_.size()));
    json.Field("strings", strings_).Key("records").BeginArray();
    for (const Row& row : rows_) {
      const StoredRecord& record = row.record;
      json.BeginArray().Int(record.line).String(Cut(record.compile, kMaxName));
      json.String(Cut(record.kind, kMaxName)).String(Cut(record.name, kMaxName));
      json.String(Cut(record.prefix, kMaxName)).String(row.metadata).Int(row.bytes);
      json.Int(row.place.part).Int(row.place.slot).String(Cut(row.ref, kMaxName));
      json.Int(row.nodes).Int(row.count).EndArray();
    }
    json.EndArray().Key("status").BeginArray();
    for (const LogCompile& compile : view_.facts.compiles)
      json.BeginArray().String(Cut(compile.id, kMaxName)).String(compile.status).EndArray();
    json.EndArray().Key("tables").BeginArray();
    for (const auto& [id, table] : tables_) {
      json.BeginArray().String(Cut(id, kMaxName));
      AppendJson(table, json);
      json.EndArray();
    }
    json.EndArray().EndObject();
    return out;
  }

  TraceReader& trace_;
  const StoredRun& run_;
  int64_t left_bytes_;
  bool several_runs_;
  LogView view_;
  std::vector<Row> rows_;
  std::vector<StoredRecord> events_;
  std::vector<std::pair<std::string, LogTable>> tables_;  // by compilation
  std::map<ArtifactId, int64_t> bytes_of_;
  std::map<std::tuple<SnapshotId, std::string, std::string>, std::string> refs_;
  std::string strings_;  // a JSON object, as text
  std::map<ArtifactId, Place> places_;
  int64_t next_part_ = 0;
};

}  // namespace

Result<LogView> MakeLogView(TraceReader& trace, const StoredRun& run, size_t max_bytes) {
  return LogViewMaker(trace, run, max_bytes).Make();
}

}  // namespace strata
