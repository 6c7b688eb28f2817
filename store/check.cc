#include "store/check.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <thread>

#include <fmt/format.h>

#include "store/artifact_parts.h"
#include "store/births.h"
#include "store/database/database.h"
#include "store/database/pack.h"
#include "store/database/pool.h"
#include "store/snapshot_loader.h"
#include "store/trace_reader.h"

namespace strata {
namespace {

constexpr size_t kBirthsColumn = 15;
constexpr size_t kArtifactColumn = 5, kArtifactDataColumn = 1;
constexpr size_t kMaxUnpackedBytes = size_t{1} << 32;

bool IsPool(TableId table) {
  return table == TableId::kStringPool || table == TableId::kTypePool ||
         table == TableId::kNodePool || table == TableId::kChunkPool;
}

class Checker {
 public:
  explicit Checker(Database& database) : database_(database) {}

  Result<std::vector<Finding>> Check() {
    STRATA_RETURN_IF_ERROR(database_.Begin(Database::Mode::kRead));
    CheckFile();
    for (size_t i = 0; i < NumTables(database_.version()); ++i)
      CheckTable(static_cast<TableId>(i));
    if (findings_.empty()) CheckParts();
    CheckReferences();
    CheckSnapshots();
    database_.Rollback();
    // What is left is whether rows that are sound by themselves fit together.
    if (findings_.empty()) {
      const auto reader = TraceReader::Open(database_.path());
      if (reader) {
        STRATA_RETURN_IF_ERROR(CheckExecuted(**reader));
      } else {
        findings_.push_back({"", 0, reader.error().message()});
      }
    }
    return std::move(findings_);
  }

 private:
  void CheckFile() {
    const auto lines = database_.QueryTexts("PRAGMA integrity_check(100)");
    if (!lines) return AddFile(lines.error().message());
    for (const std::string& line : *lines) {
      if (line != "ok") AddFile(line);
    }
  }

  void CheckTable(TableId table) {
    Result<Cursor> row = database_.Scan(table, std::numeric_limits<int64_t>::min());
    if (!row) return AddLast(row.error());
    int64_t next = 1;
    bool sound = true;
    while (true) {
      const Result<bool> more = row->Next();
      if (!more) {
        AddLast(more.error());
        sound = false;
        continue;
      }
      if (!*more) break;
      if (sound && row->id() != next) {
        Add(table, row->id(), "rows before it are missing or twice there");
        sound = false;
      }
      next = row->id() + CheckRow(table, *row);
    }
    if (!sound) return;
    const int64_t counted = Counter(table);
    if (counted != next - 1) {
      Add(table, 0, fmt::format("it has {} rows and should have {}", next - 1, counted));
    }
  }

  /// Returns how many ids the row takes.
  int64_t CheckRow(TableId table, const Cursor& row) {
    if (table == TableId::kCounter) counters_.push_back(row.Integer(1));
    if (IsPool(table)) {
      const Status status = PoolReader(database_, table).CheckBlock(row);
      if (!status) AddLast(status.error());
      return row.Integer(0);
    }
    if (table == TableId::kPass) {
      const auto bytes = Unpack(row.Bytes(kBirthsColumn), kMaxUnpackedBytes);
      if (!bytes || !DecodeBirths(*bytes)) Add(table, row.id(), "its births do not decode");
    }
    if (table == TableId::kArtifact) {
      CheckArtifact(row);
    }
    if (table == TableId::kArtifactData) {
      const auto bytes = Unpack(row.Bytes(kArtifactDataColumn), kMaxUnpackedBytes);
      if (!bytes || bytes->size() != static_cast<uint64_t>(row.Integer(0))) {
        Add(table, row.id(), "its data does not unpack");
      }
      data_sizes_.push_back(row.Integer(0));
    }
    if (table == TableId::kSnapshot) snapshots_.push_back(static_cast<SnapshotId>(row.id()));
    return 1;
  }

  void CheckArtifact(const Cursor& row) {
    const std::string_view data = row.Bytes(kArtifactColumn);
    if (database_.version() < 2) {
      if (!Unpack(data, kMaxUnpackedBytes)) {
        Add(TableId::kArtifact, row.id(), "its data does not unpack");
      }
    } else if (auto parts = DecodeParts(data)) {
      artifacts_.push_back({row.id(), row.Integer(4), std::move(*parts)});
    } else {
      Add(TableId::kArtifact, row.id(), "its list of parts does not decode");
    }
  }

  void CheckParts() {
    for (const Artifact& artifact : artifacts_) {
      int64_t bytes = 0;
      for (const int64_t part : artifact.parts) {
        const auto index = static_cast<uint64_t>(part) - 1;
        if (index < data_sizes_.size()) bytes += data_sizes_[index];
      }
      if (bytes != artifact.bytes) {
        Add(TableId::kArtifact, artifact.id, "its parts are missing or have another size");
      }
    }
  }

  int64_t Counter(TableId table) const {
    if (table == TableId::kCounter) return NextStableIdCounter(database_.version());
    const auto index = static_cast<size_t>(CounterOf(table)) - 1;
    return index < counters_.size() ? counters_[index] : -1;
  }

  void CheckReferences() {
    const auto lines = database_.QueryTexts(
        "SELECT printf('table %s, row %d: its %s does not exist', \"table\", rowid, parent) "
        "FROM pragma_foreign_key_check");
    if (!lines) return AddFile(lines.error().message());
    for (const std::string& line : *lines)
      AddFile(line);
  }

  /// Loading all graphs is nearly all of the work, so all cores take part of it.
  void CheckSnapshots() {
    constexpr size_t kMinShare = 4;
    const size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const size_t shares = std::clamp<size_t>(snapshots_.size() / kMinShare, 1, cores);
    std::vector<std::vector<Finding>> found(shares);
    std::vector<std::thread> threads;
    const std::span<const SnapshotId> all = snapshots_;
    for (size_t i = 0; i < shares; ++i) {
      const size_t begin = all.size() * i / shares, end = all.size() * (i + 1) / shares;
      threads.emplace_back([this, part = all.subspan(begin, end - begin), &out = found[i]] {
        // A connection is for one thread.
        const auto database = Database::OpenExisting(database_.path());
        if (database) {
          LoadAll(**database, part, out);
        } else {
          out.push_back({"", 0, database.error().message()});
        }
      });
    }
    for (std::thread& thread : threads)
      thread.join();
    for (std::vector<Finding>& part : found)
      std::ranges::move(part, std::back_inserter(findings_));
  }

  static void LoadAll(Database& database, std::span<const SnapshotId> snapshots,
                      std::vector<Finding>& findings) {
    SnapshotLoader loader(database);
    for (const SnapshotId id : snapshots) {
      const auto module = loader.Load(id);
      if (module) continue;
      const Damage& damage = database.last_damage();
      if (damage.table == TableId::kSnapshot) {
        findings.push_back(LastFinding(database, module.error()));
      } else {
        findings.push_back({TableOf(TableId::kSnapshot).name, static_cast<int64_t>(id),
                            fmt::format("it needs {}, row {}: {}", TableOf(damage.table).name,
                                        damage.row, damage.what)});
      }
    }
  }

  /// What was executed must be a recorded graph, at steps that were recorded.
  Status CheckExecuted(TraceReader& trace) {
    for (const StoredRun& run : trace.runs()) {
      STRATA_TRY(const std::vector<StepRecord> steps, trace.LoadSteps(run.id));
      for (const ExecutedRange& range : run.executed) {
        const std::string place =
            fmt::format("run {}, graph '{}', steps {} … {}", static_cast<int64_t>(run.id),
                        range.graph, range.first_step, range.last_step);
        if (!IsExecutedRecorded(trace, run, range)) {
          Add(TableId::kExecuted, 0,
              fmt::format("{}: no recorded graph has the executed fingerprint {}", place,
                          ToString(range.fingerprint)));
        }
        if (!steps.empty() &&
            (range.last_step < range.first_step || range.last_step > steps.back().step)) {
          Add(TableId::kExecuted, 0,
              fmt::format("{}: the last recorded step is {}", place, steps.back().step));
        }
      }
    }
    return Ok();
  }

  void Add(TableId table, int64_t row, std::string what) {
    findings_.push_back({TableOf(table).name, row, std::move(what)});
  }
  void AddFile(std::string what) { findings_.push_back({"", 0, std::move(what)}); }
  void AddLast(const Error& error) { findings_.push_back(LastFinding(database_, error)); }
  /// Of an error that came from Database::Damaged, if its code says so.
  static Finding LastFinding(const Database& database, const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) return {"", 0, error.message()};
    const Damage& damage = database.last_damage();
    return {TableOf(damage.table).name, damage.row, damage.what};
  }

  Database& database_;
  struct Artifact {
    int64_t id, bytes;
    std::vector<int64_t> parts;
  };
  std::vector<int64_t> counters_;
  std::vector<Artifact> artifacts_;
  std::vector<int64_t> data_sizes_;
  std::vector<SnapshotId> snapshots_;
  std::vector<Finding> findings_;
};

}  // namespace

Result<std::vector<Finding>> CheckTrace(const std::string& path) {
  Result<std::unique_ptr<Database>> database = Database::OpenExisting(path);
  if (!database) {
    if (database.error().code() != ErrorCode::kCorrupt) return std::move(database).error();
    return std::vector<Finding>{{"", 0, database.error().message()}};
  }
  return Checker(**database).Check();
}

}  // namespace strata
