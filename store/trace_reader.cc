#include "store/trace_reader.h"

#include <algorithm>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "store/artifact_parts.h"
#include "store/births.h"
#include "store/database/database.h"
#include "store/database/pack.h"
#include "store/snapshot_loader.h"

namespace strata {
namespace {

constexpr size_t kMaxArtifactBytes = size_t{1} << 32;

/// Everything that is read during its lifetime is one consistent state.
class ReadTransaction {
 public:
  static Result<ReadTransaction> Begin(Database& database) {
    STRATA_RETURN_IF_ERROR(database.Begin(Database::Mode::kRead));
    return ReadTransaction(database);
  }
  ReadTransaction(ReadTransaction&& other) noexcept
      : database_(std::exchange(other.database_, nullptr)) {}
  ReadTransaction& operator=(ReadTransaction&&) = delete;
  ~ReadTransaction() {
    if (database_ != nullptr) database_->Rollback();
  }

 private:
  explicit ReadTransaction(Database& database) : database_(&database) {}
  Database* database_;
};

/// The content of the file besides graphs, in one consistent state.
struct Contents {
  std::vector<StoredRun> runs;
  std::vector<SnapshotInfo> snapshots;
  struct GraphRow {
    RunId run;
    std::string name;
  };
  std::vector<GraphRow> graphs;
  std::array<int64_t, kNumTables> rows{};
  uint64_t next_stable_id = 1;
};

class Reader final : public TraceReader {
 public:
  explicit Reader(std::unique_ptr<Database> database)
      : database_(std::move(database)), loader_(*database_) {}

  const std::vector<StoredRun>& runs() const override { return contents_.runs; }
  const StoredRun* FindRun(RunId id) const override { return At(contents_.runs, id); }
  const SnapshotInfo* FindSnapshot(SnapshotId id) const override {
    return At(contents_.snapshots, id);
  }
  size_t num_snapshots() const override { return contents_.snapshots.size(); }
  uint64_t next_stable_id() const override { return contents_.next_stable_id; }
  const std::string& path() const override { return database_->path(); }

  Result<bool> Refresh() override {
    // Before the runs are read: a writer that leaves behind them has ended its run.
    const bool is_live = (data_version_ < 0 || HasRunning()) && IsBeingWritten(path());
    STRATA_TRY(const ReadTransaction transaction, ReadTransaction::Begin(*database_));
    // Differs after another connection's commit.
    STRATA_TRY(const int64_t version, database_->QueryInteger("PRAGMA data_version"));
    if (version == data_version_) return !is_live && Interrupt();
    Contents contents;
    STRATA_RETURN_IF_ERROR(ReadCounters(contents));
    STRATA_RETURN_IF_ERROR(ReadRuns(contents));
    STRATA_RETURN_IF_ERROR(ReadGraphs(contents));
    STRATA_RETURN_IF_ERROR(ReadSnapshots(contents));
    STRATA_RETURN_IF_ERROR(ReadPasses(contents));
    STRATA_RETURN_IF_ERROR(ReadExecuted(contents));
    STRATA_RETURN_IF_ERROR(ReadArtifacts(contents));
    contents_ = std::move(contents);
    data_version_ = version;
    if (!is_live) Interrupt();
    return true;
  }

  Result<std::unique_ptr<Module>> LoadSnapshot(SnapshotId id) override {
    if (id == SnapshotId::kNone) {
      auto nothing = std::make_unique<Module>();
      nothing->AddGraph("");
      return nothing;
    }
    STRATA_TRY(const ReadTransaction transaction, ReadTransaction::Begin(*database_));
    STRATA_TRY(std::unique_ptr<Module> module, loader_.Load(id));
    module->ReserveStableIds(contents_.next_stable_id);
    return module;
  }

  Result<std::vector<Provenance>> LoadBirths(PassId id) override {
    STRATA_TRY(const Cursor row, Find(TableId::kPass, static_cast<int64_t>(id)));
    const auto bytes = Unpack(row.Bytes(15), kMaxArtifactBytes);
    auto births = bytes ? DecodeBirths(*bytes) : std::nullopt;
    if (!births) return row.Damaged("its births do not decode");
    return std::move(*births);
  }

  Result<std::string> LoadArtifact(ArtifactId id) override {
    STRATA_TRY(const Cursor row, Find(TableId::kArtifact, static_cast<int64_t>(id)));
    if (database_->version() < 2) {
      auto bytes = Unpack(row.Bytes(5), kMaxArtifactBytes);
      if (!bytes) return row.Damaged("its data does not unpack");
      return std::move(*bytes);
    }
    const auto parts = DecodeParts(row.Bytes(5));
    if (!parts) return row.Damaged("its list of parts does not decode");
    std::string bytes;
    for (const int64_t part : *parts) {
      STRATA_TRY(const Cursor data, Find(TableId::kArtifactData, part));
      const auto unpacked = Unpack(data.Bytes(1), kMaxArtifactBytes);
      if (!unpacked || bytes.size() + unpacked->size() > kMaxArtifactBytes) {
        return data.Damaged("its data does not unpack");
      }
      bytes += *unpacked;
    }
    if (bytes.size() != static_cast<uint64_t>(row.Integer(4))) {
      return row.Damaged("its parts have another size");
    }
    return bytes;
  }

  Result<std::vector<StepRecord>> LoadSteps(RunId run) override {
    STRATA_TRY(const ReadTransaction transaction, ReadTransaction::Begin(*database_));
    std::vector<StepRecord> steps;
    STRATA_RETURN_IF_ERROR(ForEachRow(TableId::kStep, [&](const Cursor& row) {
      if (row.Integer(0) == static_cast<int64_t>(run)) {
        steps.push_back({row.Integer(1), row.Real(2), row.Real(3), row.Integer(4)});
      }
      return Ok();
    }));
    return steps;
  }

  Result<std::vector<EventRecord>> LoadEvents(RunId run) override {
    STRATA_TRY(const ReadTransaction transaction, ReadTransaction::Begin(*database_));
    std::vector<EventRecord> events;
    STRATA_RETURN_IF_ERROR(ForEachRow(TableId::kEvent, [&](const Cursor& row) {
      if (row.Integer(0) == static_cast<int64_t>(run)) {
        events.push_back({row.String(1), row.String(2), row.Integer(3), row.Integer(4),
                          static_cast<StableId>(row.Integer(5)), row.String(6)});
      }
      return Ok();
    }));
    return events;
  }

 private:
  bool HasRunning() const {
    return std::ranges::any_of(
        runs(), [](const StoredRun& run) { return run.status == RunStatus::kRunning; });
  }

  /// Marks runs whose writer is gone. False: there are none.
  bool Interrupt() {
    const bool has_running = HasRunning();
    for (StoredRun& run : contents_.runs) {
      if (run.status == RunStatus::kRunning) run.status = RunStatus::kInterrupted;
    }
    return has_running;
  }

  template <class Items, class IdType>
  static auto At(Items& items, IdType id) -> decltype(items.data()) {
    const auto index = static_cast<uint64_t>(id) - 1;
    return index < items.size() ? items.data() + index : nullptr;
  }

  Result<Cursor> Find(TableId table, int64_t id) {
    STRATA_TRY(Cursor row, database_->Scan(table, id));
    STRATA_TRY(const bool found, row.Next());
    if (!found || row.id() != id) {
      return Error(ErrorCode::kNotFound, "no such {}: {}: {}: 'strata ls' lists what it has",
                   TableOf(table).name, path(), id);
    }
    return row;
  }

  /// Calls `fn(row)` for all rows. Ids are dense and counted, so that no lost page goes unnoticed.
  template <class Fn>
  Status ForEachRow(TableId table, const Fn& fn) {
    STRATA_TRY(const int64_t expected, RowCount(table));
    STRATA_TRY(Cursor row, database_->Scan(table, std::numeric_limits<int64_t>::min()));
    int64_t count = 0;
    while (true) {
      STRATA_TRY(const bool more, row.Next());
      if (!more) break;
      if (row.id() != ++count) return row.Damaged("rows before it are missing or twice there");
      STRATA_RETURN_IF_ERROR(fn(row));
    }
    if (count != expected) {
      return database_->Damaged(table, 0,
                                fmt::format("it has {} rows and should have {}", count, expected));
    }
    return Ok();
  }

  Result<int64_t> RowCount(TableId table) {
    if (table == TableId::kCounter) return NextStableIdCounter(database_->version());
    STRATA_TRY(const Cursor row, Find(TableId::kCounter, CounterOf(table)));
    return row.Integer(1);
  }

  Status ReadCounters(Contents& contents) {
    return ForEachRow(TableId::kCounter, [&](const Cursor& row) -> Status {
      const int64_t index = row.id() - 1;
      const bool is_table = index < static_cast<int64_t>(NumTables(database_->version()));
      const std::string_view name =
          is_table ? TableOf(static_cast<TableId>(index)).name : "next_stable_id";
      if (row.Bytes(0) != name || row.Integer(1) < 0)
        return row.Damaged("it is no counter of ours");
      if (is_table) {
        contents.rows[static_cast<size_t>(index)] = row.Integer(1);
      } else {
        contents.next_stable_id = static_cast<uint64_t>(row.Integer(1));
      }
      return Ok();
    });
  }

  Status ReadRuns(Contents& contents) {
    return ForEachRow(TableId::kRun, [&](const Cursor& row) -> Status {
      StoredRun run;
      run.id = static_cast<RunId>(row.id());
      run.info.kind = static_cast<RunKind>(row.Integer(0));
      run.info.is_of_all_ranks = row.Integer(1) == kAllRanks;
      if (!run.info.is_of_all_ranks) run.info.rank = static_cast<int32_t>(row.Integer(1));
      run.info.world = static_cast<int32_t>(row.Integer(2));
      run.info.source = row.String(3);
      run.info.command = row.String(4);
      run.info.pipeline = row.String(5);
      run.info.config = row.String(6);
      run.status = static_cast<RunStatus>(row.Integer(7));
      if (ToString(run.info.kind).empty() || ToString(run.status).empty()) {
        return row.Damaged("its kind or status is unknown");
      }
      contents.runs.push_back(std::move(run));
      return Ok();
    });
  }

  Status ReadGraphs(Contents& contents) {
    return ForEachRow(TableId::kGraph, [&](const Cursor& row) -> Status {
      const auto run = static_cast<RunId>(row.Integer(0));
      if (At(contents.runs, run) == nullptr) return row.Damaged("its run does not exist");
      contents.graphs.push_back({run, row.String(1)});
      return Ok();
    });
  }

  Status ReadSnapshots(Contents& contents) {
    return ForEachRow(TableId::kSnapshot, [&](const Cursor& row) -> Status {
      const Contents::GraphRow* graph = At(contents.graphs, row.Integer(0));
      if (graph == nullptr) return row.Damaged("its graph does not exist");
      SnapshotInfo info;
      info.id = static_cast<SnapshotId>(row.id());
      info.run = graph->run;
      info.graph = graph->name;
      info.fingerprint = FingerprintFromBytes(row.Bytes(1));
      info.everything = FingerprintFromBytes(row.Bytes(2));
      info.nodes = row.Integer(3);
      info.attributes = row.String(4);
      std::vector<StoredGraph>& graphs = At(contents.runs, graph->run)->graphs;
      auto place = std::ranges::find(graphs, graph->name, &StoredGraph::name);
      if (place == graphs.end()) place = graphs.insert(graphs.end(), {graph->name, {}});
      place->snapshots.push_back(info.id);
      contents.snapshots.push_back(std::move(info));
      return Ok();
    });
  }

  Status ReadPasses(Contents& contents) {
    return ForEachRow(TableId::kPass, [&](const Cursor& row) -> Status {
      StoredRun* run = At(contents.runs, row.Integer(0));
      const Contents::GraphRow* graph = At(contents.graphs, row.Integer(6));
      StoredPass pass;
      pass.id = static_cast<PassId>(row.id());
      PassRecord& record = pass.record;
      record.index = static_cast<int32_t>(row.Integer(1));
      record.name = row.String(2);
      record.options = row.String(3);
      record.outcome = static_cast<PassOutcome>(row.Integer(4));
      record.wall_ns = row.Integer(5);
      record.before = static_cast<SnapshotId>(row.Integer(7));
      record.after = static_cast<SnapshotId>(row.Integer(8));
      record.counts = {row.Integer(9), row.Integer(10), row.Integer(11), row.Integer(12)};
      record.error = row.String(13);
      record.reproduce = row.String(14);
      const auto exists = [&](SnapshotId id) {
        return id == SnapshotId::kNone || At(contents.snapshots, id) != nullptr;
      };
      if (run == nullptr || graph == nullptr || !exists(record.before) || !exists(record.after) ||
          ToString(record.outcome).empty()) {
        return row.Damaged("its run, graph, snapshots or outcome do not exist");
      }
      record.graph = graph->name;
      run->passes.push_back(std::move(pass));
      return Ok();
    });
  }

  Status ReadExecuted(Contents& contents) {
    return ForEachRow(TableId::kExecuted, [&](const Cursor& row) -> Status {
      const Contents::GraphRow* graph = At(contents.graphs, row.Integer(0));
      if (graph == nullptr) return row.Damaged("its graph does not exist");
      At(contents.runs, graph->run)
          ->executed.push_back(
              {graph->name, row.Integer(1), row.Integer(2), FingerprintFromBytes(row.Bytes(3))});
      return Ok();
    });
  }

  Status ReadArtifacts(Contents& contents) {
    return ForEachRow(TableId::kArtifact, [&](const Cursor& row) -> Status {
      const auto run = static_cast<RunId>(row.Integer(0));
      StoredRun* owner = At(contents.runs, run);
      if (owner == nullptr) return row.Damaged("its run does not exist");
      owner->artifacts.push_back({static_cast<ArtifactId>(row.id()), run, row.String(1),
                                  row.String(2), row.Integer(4), row.String(3)});
      return Ok();
    });
  }

  std::unique_ptr<Database> database_;
  SnapshotLoader loader_;
  Contents contents_;
  int64_t data_version_ = -1;
};

}  // namespace

Result<std::unique_ptr<TraceReader>> TraceReader::Open(const std::string& path) {
  STRATA_TRY(std::unique_ptr<Database> database, Database::OpenExisting(path));
  auto reader = std::make_unique<Reader>(std::move(database));
  STRATA_TRY(const bool changed, reader->Refresh());
  (void)changed;
  return std::unique_ptr<TraceReader>(std::move(reader));
}

const StoredPass* FindExecutedPass(const TraceReader& trace, const StoredRun& run,
                                   const ExecutedRange& range) {
  const StoredPass* last = nullptr;
  for (const StoredPass& pass : run.passes) {
    const SnapshotInfo* after = trace.FindSnapshot(pass.record.after);
    if (pass.record.graph == range.graph && pass.record.outcome == PassOutcome::kOk &&
        after != nullptr && after->fingerprint == range.fingerprint) {
      last = &pass;
    }
  }
  return last;
}

bool IsExecutedRecorded(const TraceReader& trace, const StoredRun& run,
                        const ExecutedRange& range) {
  const StoredGraph* graph = run.FindGraph(range.graph);
  return graph != nullptr && std::ranges::any_of(graph->snapshots, [&](SnapshotId id) {
           const SnapshotInfo* snapshot = trace.FindSnapshot(id);
           return snapshot != nullptr && snapshot->fingerprint == range.fingerprint;
         });
}

}  // namespace strata
