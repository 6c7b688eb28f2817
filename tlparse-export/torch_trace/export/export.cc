#include "tlparse-export/torch_trace/export/export.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/json.h"
#include "tlparse-export/torch_trace/export/export_run.h"
#include "tlparse-export/torch_trace/export/log_writer.h"
#include "tlparse-export/torch_trace/export/stored_records.h"
#include "tlparse-export/torch_trace/export/tlparse_rules.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

bool TellsRank(const std::vector<StoredRecord>& records) {
  return std::ranges::any_of(records, [](const StoredRecord& record) {
    const auto fields = ReadJsonObject(record.envelope).value_or(std::vector<JsonField>{});
    return std::ranges::find(fields, "rank", &JsonField::key) != fields.end();
  });
}

/// Writes the log that a run was imported from.
class ImportedRun {
 public:
  ImportedRun(TraceReader& trace, const StoredRun& run, const ExportSelection& selection,
              const std::vector<StoredRecord>& records, LogWriter& log, ExportSummary& summary)
      : trace_(trace),
        run_(run),
        selection_(selection),
        records_(records),
        log_(log),
        summary_(summary) {}

  Status Write() {
    STRATA_RETURN_IF_ERROR(WriteStrings());
    summary_.graphs += selection_.graph ? 1 : static_cast<int64_t>(run_.graphs.size());
    summary_.passes += std::ranges::count_if(run_.passes, [&](const StoredPass& pass) {
      return !selection_.graph || pass.record.graph == *selection_.graph;
    });
    for (size_t i = 0; i < records_.size(); ++i) {
      // Events of one header are one record of the log.
      if (i > 0 && records_[i].line == records_[i - 1].line && records_[i].line > 0) continue;
      if (IsSelected(records_[i])) STRATA_RETURN_IF_ERROR(WriteRecord(records_[i]));
    }
    return Ok();
  }

 private:
  Status WriteStrings() {
    for (const ArtifactInfo& artifact : run_.artifacts) {
      if (artifact.kind != "strings") continue;
      STRATA_TRY(const std::string table, trace_.LoadArtifact(artifact.id));
      std::map<int64_t, std::string> strings;
      for (const JsonField& field : ReadJsonObject(table).value_or(std::vector<JsonField>{})) {
        const std::optional<int64_t> id = ReadJsonInt(field.key);
        const std::optional<std::string> text = ReadJsonString(field.value);
        if (id && text) strings[*id] = *text;
      }
      for (const auto& [id, text] : strings)
        STRATA_RETURN_IF_ERROR(log_.AddString(id, text));
    }
    return Ok();
  }

  bool IsSelected(const StoredRecord& record) const {
    if (!selection_.graph) return true;
    const SnapshotInfo* snapshot = trace_.FindSnapshot(record.snapshot);
    return snapshot != nullptr && snapshot->graph == *selection_.graph;
  }

  Status WriteRecord(const StoredRecord& record) {
    if (!record.has_payload) return log_.AddRecord(record.prefix, record.envelope, std::nullopt);
    STRATA_TRY(const std::string payload, LoadPayload(trace_, record));
    if (!record.envelope.empty()) return log_.AddRecord(record.prefix, record.envelope, payload);
    // An FX text had no record.
    std::string envelope;
    JsonWriter json(envelope);
    json.BeginObject().Key("artifact").BeginObject();
    json.Field("name", PlainName(record.name)).Field("encoding", "string");
    json.EndObject().EndObject();
    return log_.AddRecord(record.prefix, envelope, payload);
  }

  TraceReader& trace_;
  const StoredRun& run_;
  const ExportSelection& selection_;
  const std::vector<StoredRecord>& records_;
  LogWriter& log_;
  ExportSummary& summary_;
};

/// File names of runs: one log per rank, further ones with their run's number.
std::vector<std::string> FileNames(const std::vector<const StoredRun*>& runs, bool has_ranks) {
  std::vector<std::string> names;
  std::vector<int32_t> ranks;
  for (const StoredRun* run : runs) {
    std::string name = "dedicated_log_torch_trace";
    if (has_ranks) name += fmt::format("_rank_{}", run->info.rank);
    if (std::ranges::find(ranks, run->info.rank) != ranks.end()) {
      name += fmt::format("_run_{}", static_cast<int64_t>(run->id));
    }
    ranks.push_back(run->info.rank);
    names.push_back(name + ".log");
  }
  return names;
}

}  // namespace

Status ExportTorchTrace(TraceReader& trace, const ExportSelection& selection,
                        const AtomicFolder& folder, ExportSummary& summary) {
  std::vector<const StoredRun*> runs;
  std::vector<std::vector<StoredRecord>> records;
  bool has_ranks = selection.runs.size() > 1;
  for (RunId id : selection.runs) {
    runs.push_back(trace.FindRun(id));
    STRATA_TRY(records.emplace_back(), ReadStoredRecords(trace, *runs.back()));
    const RunInfo& info = runs.back()->info;
    has_ranks = has_ranks || info.rank > 0 || (info.world > 1 && !info.is_of_all_ranks) ||
                TellsRank(records.back());
  }
  // A log of nothing but strings is a log too.
  if (runs.empty()) return folder.Write("dedicated_log_torch_trace.log", "");
  const std::vector<std::string> names = FileNames(runs, has_ranks && runs.size() > 1);
  for (size_t i = 0; i < runs.size(); ++i) {
    STRATA_TRY(const std::string path, folder.PathOf(names[i]));
    STRATA_TRY(LogWriter log, LogWriter::Create(path, has_ranks ? std::optional(runs[i]->info.rank)
                                                                : std::nullopt));
    if (!records[i].empty()) {
      STRATA_RETURN_IF_ERROR(
          ImportedRun(trace, *runs[i], selection, records[i], log, summary).Write());
    } else {
      STRATA_RETURN_IF_ERROR(WriteOwnRun(trace, *runs[i], selection, log, summary));
    }
    STRATA_RETURN_IF_ERROR(log.Commit());
    ++summary.files;
    summary.records += log.num_records();
    summary.wrapped += log.num_wrapped();
  }
  return Ok();
}

}  // namespace strata
