#include "tlparse-export/torch_trace/export/stored_records.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "ir/fx/fx.h"
#include "tlparse-export/torch_trace/read/log.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

/// A JSON object by keys; what is not there is empty or 0.
class Fields {
 public:
  explicit Fields(std::string_view text)
      : fields_(ReadJsonObject(text).value_or(std::vector<JsonField>{})) {}

  std::string_view Raw(std::string_view key) const {
    const auto found = std::ranges::find(fields_, key, &JsonField::key);
    return found == fields_.end() ? std::string_view{} : found->value;
  }
  std::string Text(std::string_view key) const { return ReadJsonString(Raw(key)).value_or(""); }
  int64_t Int(std::string_view key) const { return ReadJsonInt(Raw(key)).value_or(0); }

 private:
  std::vector<JsonField> fields_;
};

StoredRecord FromAttributes(const Fields& fields) {
  StoredRecord record;
  record.line = fields.Int("line");
  record.name = fields.Text("record");
  record.kind = fields.Text("kind");
  record.compile = fields.Text("compile");
  record.prefix = fields.Text("prefix");
  record.envelope = fields.Text("envelope");
  return record;
}

class Reader {
 public:
  Reader(TraceReader& trace, const StoredRun& run) : trace_(trace), run_(run) {}

  /// `kind`: of the records to read; "": all.
  Result<std::vector<StoredRecord>> Read(std::string_view kind = {}) {
    for (const ArtifactInfo& artifact : run_.artifacts) {
      if (!kind.empty() && artifact.name != kind) continue;
      if (artifact.kind == "record") {
        StoredRecord record = FromAttributes(Fields(artifact.attributes));
        record.has_payload = true;
        record.artifact = artifact.id;
        records_.push_back(std::move(record));
      } else if (artifact.kind == "moments") {
        STRATA_RETURN_IF_ERROR(ReadMoments(artifact));
      } else if (artifact.kind == "records") {
        STRATA_RETURN_IF_ERROR(ReadCrowd(artifact));
      }
    }
    std::ranges::stable_sort(records_, {}, &StoredRecord::line);
    return std::move(records_);
  }

  Result<std::vector<StoredRecord>> ReadGraphs() {
    for (const ArtifactInfo& artifact : run_.artifacts) {
      if (artifact.kind == "moments") STRATA_RETURN_IF_ERROR(ReadMoments(artifact));
    }
    return std::move(records_);
  }

 private:
  Status ReadMoments(const ArtifactInfo& artifact) {
    STRATA_TRY(const std::string bytes, trace_.LoadArtifact(artifact.id));
    for (std::string_view text = bytes; !text.empty();) {
      const Fields fields(TakeLine(text));
      StoredRecord record = FromAttributes(fields);
      record.has_payload = true;
      record.snapshot = SnapshotId{fields.Int("snapshot")};
      record.artifact = ArtifactId{fields.Int("text")};
      records_.push_back(std::move(record));
    }
    return Ok();
  }

  /// Lines of a log, with the numbers that they had.
  Status ReadCrowd(const ArtifactInfo& artifact) {
    STRATA_TRY(const std::string bytes, trace_.LoadArtifact(artifact.id));
    STRATA_TRY(LogContent log, ReadLog(bytes, trace_.path()));
    std::map<size_t, LogRecord> records;  // a header may hold several events
    for (LogRun& run : log.runs) {
      for (LogRecord& record : run.records) {
        if (record.kind == artifact.name) records.try_emplace(record.line, std::move(record));
      }
    }
    const Fields attributes(artifact.attributes);
    const auto lines = ReadJsonArray(attributes.Raw("lines"));
    size_t next = 0;
    for (auto& [line, read] : records) {
      StoredRecord record;
      if (lines && next < lines->size()) record.line = ReadJsonInt((*lines)[next]).value_or(0);
      ++next;
      record.kind = std::move(read.kind);
      record.name = std::move(read.name);
      record.compile = std::move(read.compile);
      record.prefix = std::move(read.prefix);
      record.envelope = std::move(read.envelope);
      record.has_payload = read.payload >= 0;
      if (record.has_payload) record.text = log.payloads[static_cast<size_t>(read.payload)].text;
      records_.push_back(std::move(record));
    }
    return Ok();
  }

  TraceReader& trace_;
  const StoredRun& run_;
  std::vector<StoredRecord> records_;
};

}  // namespace

Result<std::vector<StoredRecord>> ReadStoredRecords(TraceReader& trace, const StoredRun& run) {
  return Reader(trace, run).Read();
}

std::string CompileOf(const ArtifactInfo& artifact) {
  return artifact.kind == "record" ? Fields(artifact.attributes).Text("compile") : std::string();
}

Result<std::vector<StoredRecord>> ReadStoredRecords(TraceReader& trace, const StoredRun& run,
                                                    std::string_view kind) {
  return Reader(trace, run).Read(kind);
}

Result<std::vector<StoredRecord>> ReadGraphRecords(TraceReader& trace, const StoredRun& run) {
  return Reader(trace, run).ReadGraphs();
}

Result<std::string> LoadFxText(TraceReader& trace, SnapshotId snapshot) {
  STRATA_TRY(const std::unique_ptr<Module> module, trace.LoadSnapshot(snapshot));
  return PrintFx(module->graph(GraphId{0}));
}

Result<std::string> LoadPayload(TraceReader& trace, const StoredRecord& record) {
  if (record.artifact != ArtifactId::kNone) return trace.LoadArtifact(record.artifact);
  if (record.snapshot != SnapshotId::kNone) return LoadFxText(trace, record.snapshot);
  return record.text;
}

}  // namespace strata
