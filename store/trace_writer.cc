#include "store/trace_writer.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "store/artifact_appender.h"
#include "store/artifact_parts.h"
#include "store/births.h"
#include "store/count_changes.h"
#include "store/database/database.h"
#include "store/database/disk_reserve.h"
#include "store/database/pack.h"
#include "store/run_end.h"
#include "store/snapshot_encoder.h"
#include "store/snapshot_loader.h"

namespace strata {
namespace {

template <class IdType>
int64_t Number(IdType id) {
  return static_cast<int64_t>(id);
}

class Writer final : public TraceWriter {
 public:
  /// `aside` is the file to be given its name by Finish, if it has not got it.
  /// `lock` is held until the end.
  Writer(std::string path, std::unique_ptr<Database> database, std::optional<AtomicFile> aside,
         FileLock lock)
      : path_(std::move(path)),
        aside_(std::move(aside)),
        lock_(std::move(lock)),
        database_(std::move(database)),
        loader_(std::make_unique<SnapshotLoader>(*database_)) {
    if (!aside_) reserve_.emplace(path_);
  }

  Result<RunId> BeginRun(const RunInfo& run) override {
    runs_.push_back(run);
    const auto id = static_cast<RunId>(runs_.size());
    STRATA_RETURN_IF_ERROR(Transact([&]() -> Status {
      Count(TableId::kRun);
      return PutRun(id, RunStatus::kRunning);
    }));
    return id;
  }

  Result<SnapshotId> AddSnapshot(RunId run, std::string_view name, const Graph& graph,
                                 std::string_view attributes) override {
    STRATA_TRY(NewSnapshot snapshot, Encode(run, name, graph, attributes));
    STRATA_RETURN_IF_ERROR(Transact([&] { return Store(snapshot); }));
    return snapshot.info.id;
  }

  Status UpdateRun(RunId id, const RunInfo& run) override {
    runs_[static_cast<size_t>(id) - 1] = run;
    return Transact([&] { return PutRun(id, RunStatus::kRunning); });
  }

  Result<SnapshotId> AddSnapshotOf(RunId run, std::string_view name, SnapshotId same,
                                   std::string_view attributes) override {
    STRATA_TRY(NewSnapshot snapshot, Copy(run, name, same));
    snapshot.info.attributes = attributes;
    STRATA_RETURN_IF_ERROR(Transact([&] { return Store(snapshot); }));
    return snapshot.info.id;
  }

  Result<std::unique_ptr<Module>> LoadSnapshot(SnapshotId id) override {
    STRATA_RETURN_IF_ERROR(CheckUsable());
    return loader_->Load(id);
  }

  Result<StoredPass> RecordPass(RunId run, PassRecord pass, const Graph* after) override {
    std::optional<NewSnapshot> snapshot;
    if (after != nullptr) {
      STRATA_TRY(snapshot, Encode(run, pass.graph, *after, {}));
      pass.after = snapshot->info.id;
    }
    const std::string births = packer_.Pack(EncodeBirths(std::exchange(pass.births, {})));
    auto id = PassId::kNone;
    const Status stored = Transact([&]() -> Status {
      if (snapshot) STRATA_RETURN_IF_ERROR(Store(*snapshot));
      STRATA_CHECK(pass.counts || RunOf(run).kind != RunKind::kImport);
      if (!pass.counts) pass.counts = CountedChanges(pass);
      STRATA_TRY(const int64_t graph, GraphRow(run, pass.graph));
      id = static_cast<PassId>(Count(TableId::kPass));
      return database_->Put(
          TableId::kPass, Number(id),
          {Number(run), int64_t{pass.index}, pass.name, pass.options, Number(pass.outcome),
           pass.wall_ns, graph, Number(pass.before), Number(pass.after), pass.counts->inserted,
           pass.counts->deleted, pass.counts->changed, pass.counts->moved, pass.error,
           pass.reproduce, births});
    });
    if (!stored) return stored.error();
    return StoredPass{id, std::move(pass)};
  }

  Status RecordExecuted(RunId run, const ExecutedRange& range) override {
    return Transact([&] { return StoreExecuted(run, range); });
  }

  Status RecordStep(RunId run, const StepRecord& step,
                    std::span<const Executed> executed) override {
    return Transact([&]() -> Status {
      for (const auto& [graph, fingerprint] : executed) {
        STRATA_RETURN_IF_ERROR(
            StoreExecuted(run, {std::string(graph), step.step, step.step, fingerprint}));
      }
      return database_->Put(TableId::kStep, Count(TableId::kStep),
                            {Number(run), step.step, step.loss, step.grad_norm, step.wall_ns});
    });
  }

  Result<ArtifactId> AddArtifact(RunId run, std::string_view name, std::string_view kind,
                                 std::string_view bytes, std::string_view attributes) override {
    auto id = ArtifactId::kNone;
    const Status stored = Transact([&]() -> Status {
      std::vector<int64_t> parts;
      STRATA_RETURN_IF_ERROR(AddParts(bytes, parts));
      id = static_cast<ArtifactId>(Count(TableId::kArtifact));
      return database_->Put(TableId::kArtifact, Number(id),
                            {Number(run), name, kind, attributes,
                             static_cast<int64_t>(bytes.size()), EncodeParts(parts)});
    });
    if (!stored) return stored.error();
    return id;
  }

  Status AppendArtifact(ArtifactId id, std::string_view bytes) override {
    return Transact([&]() -> Status {
      STRATA_TRY(Cursor row, database_->Scan(TableId::kArtifact, Number(id)));
      STRATA_TRY(const bool found, row.Next());
      std::optional<std::vector<int64_t>> parts;
      if (found) parts = DecodeParts(row.Bytes(5));
      if (!parts) return row.Damaged("its list of parts does not decode");
      const std::string name = row.String(1), kind = row.String(2), attributes = row.String(3);
      const int64_t run = row.Integer(0), size = row.Integer(4);
      STRATA_RETURN_IF_ERROR(AddParts(bytes, *parts));
      return database_->Put(TableId::kArtifact, Number(id),
                            {run, name, kind, attributes, size + static_cast<int64_t>(bytes.size()),
                             EncodeParts(*parts)});
    });
  }

  Status AddEvents(RunId run, std::span<const EventRecord> events) override {
    return Transact([&]() -> Status {
      for (const EventRecord& event : events) {
        STRATA_RETURN_IF_ERROR(
            database_->Put(TableId::kEvent, Count(TableId::kEvent),
                           {Number(run), event.kind, event.name, event.start_ns, event.duration_ns,
                            Number(event.node), event.attributes}));
      }
      return Ok();
    });
  }

  Status EndRun(RunId run, RunStatus status) override {
    STRATA_CHECK(status != RunStatus::kRunning);
    return Transact([&] { return PutRun(run, status); });
  }

  Status Finish() override {
    STRATA_RETURN_IF_ERROR(CheckUsable());
    STRATA_RETURN_IF_ERROR(CommitAside());
    finished_ = true;
    loader_.reset();
    if (!aside_) {
      STRATA_RETURN_IF_ERROR(database_->Execute("PRAGMA wal_checkpoint(TRUNCATE)"));
      // Without a log the file can be read in a read-only folder. A concurrent reader prevents the
      // change; the trace is complete nevertheless.
      STRATA_RETURN_IF_ERROR(database_->Execute("PRAGMA busy_timeout = 200"));
      (void)database_->Execute("PRAGMA journal_mode = DELETE");
    }
    database_.reset();
    return aside_ ? aside_->Commit() : Ok();
  }

  void EndAfterError(RunId run) override {
    const std::string why = failed_ ? failed_->message() : "";
    reserve_.reset();
    if (!StoreFailure(run, why)) {
      // The log that is stored into the file makes room for another.
      (void)database_->Execute("PRAGMA wal_checkpoint(TRUNCATE)");
      if (!StoreFailure(run, why)) return;
    }
    failed_.reset();
    (void)Finish();
  }

  uint64_t next_stable_id() const override { return next_stable_id_; }
  const SnapshotInfo& snapshot(SnapshotId id) const override {
    return snapshots_[static_cast<size_t>(id) - 1].info;
  }
  const std::string& path() const override { return path_; }

 private:
  struct StoredSnapshot {
    SnapshotInfo info;
    EncodedSnapshot encoded;
  };
  struct NewSnapshot {
    SnapshotInfo info;
    EncodedSnapshot encoded;
    uint64_t next_stable_id = 0;
  };

  Status CheckUsable() const {
    if (failed_) return *failed_;
    STRATA_CHECK(!finished_, "{}: written after its end", path_);
    return Ok();
  }

  /// Runs `store` as one transaction, together with the counters of what it touched. What is in
  /// memory is ahead of the file after an error, so nothing can follow one.
  ///
  /// A file aside has no readers: there all calls are one transaction.
  template <class Store>
  Status Transact(Store&& store) {
    STRATA_RETURN_IF_ERROR(CheckUsable());
    return KeepError([&]() -> Status {
      if (!in_transaction_) STRATA_RETURN_IF_ERROR(database_->Begin(Database::Mode::kWrite));
      in_transaction_ = true;
      STRATA_RETURN_IF_ERROR(store());
      if (aside_) return Ok();
      return CommitTransaction();
    }());
  }

  Status CommitAside() { return in_transaction_ ? KeepError(CommitTransaction()) : Ok(); }

  Status CommitTransaction() {
    STRATA_RETURN_IF_ERROR(PutCounters());
    in_transaction_ = false;
    return database_->Commit();
  }

  Status KeepError(Status status) {
    if (!status) {
      in_transaction_ = false;
      database_->Rollback();
      failed_ = status.error();
    }
    return status;
  }

  /// Stores bytes in rows of artifact data, equal ones once.
  Status AddParts(std::string_view bytes, std::vector<int64_t>& parts) {
    while (!bytes.empty()) {
      const std::string_view part = bytes.substr(0, kPartBytes);
      bytes.remove_prefix(part.size());
      const auto next = static_cast<uint32_t>(rows_[static_cast<size_t>(TableId::kArtifactData)]);
      const auto [row, is_new] = part_rows_.Emplace(HashBytes(part), next + 1);
      parts.push_back(*row);
      if (!is_new) continue;
      STRATA_RETURN_IF_ERROR(
          database_->Put(TableId::kArtifactData, Count(TableId::kArtifactData),
                         {static_cast<int64_t>(part.size()), packer_.Pack(part)}));
    }
    return Ok();
  }

  Status PutCounters() {
    for (size_t i = 0; i < kNumTables; ++i) {
      if (!std::exchange(counted_[i], false)) continue;
      const auto table = static_cast<TableId>(i);
      STRATA_RETURN_IF_ERROR(database_->Put(TableId::kCounter, CounterOf(table),
                                            {std::string_view(TableOf(table).name), rows_[i]}));
    }
    return Ok();
  }

  /// The id of a new row.
  int64_t Count(TableId table) {
    const auto index = static_cast<size_t>(table);
    counted_[index] = true;
    return ++rows_[index];
  }

  const RunInfo& RunOf(RunId id) const { return runs_[static_cast<size_t>(id) - 1]; }

  /// Counts in memory may be ahead of the file.
  Status StoreFailure(RunId run, std::string_view why) {
    STRATA_RETURN_IF_ERROR(database_->Begin(Database::Mode::kWrite));
    const Status stored = [&]() -> Status {
      STRATA_RETURN_IF_ERROR(PutRun(run, RunStatus::kFailed));
      STRATA_TRY(ArtifactAppender appender, ArtifactAppender::Begin(*database_));
      STRATA_RETURN_IF_ERROR(AppendRunEnd(appender, run, why));
      STRATA_RETURN_IF_ERROR(appender.End());
      return database_->Commit();
    }();
    if (!stored) database_->Rollback();
    return stored;
  }

  Status PutRun(RunId id, RunStatus status) {
    const RunInfo& run = RunOf(id);
    return database_->Put(
        TableId::kRun, Number(id),
        {Number(run.kind), run.is_of_all_ranks ? kAllRanks : int64_t{run.rank}, int64_t{run.world},
         run.source, run.command, run.pipeline, run.config, Number(status)});
  }

  Result<int64_t> GraphRow(RunId run, std::string_view name) {
    const auto [place, is_new] = graphs_.try_emplace({run, std::string(name)}, 0);
    if (is_new) {
      place->second = Count(TableId::kGraph);
      STRATA_RETURN_IF_ERROR(database_->Put(TableId::kGraph, place->second, {Number(run), name}));
    }
    return place->second;
  }

  Result<NewSnapshot> Encode(RunId run, std::string_view name, const Graph& graph,
                             std::string_view attributes) {
    STRATA_RETURN_IF_ERROR(CheckUsable());
    NewSnapshot snapshot;
    // Nodes of a log have new ids in each of its texts, so none is ever found again.
    pools_.shares_nodes = !std::ranges::all_of(
        runs_, [](const RunInfo& info) { return info.kind == RunKind::kImport; });
    STRATA_TRY(snapshot.encoded, EncodeSnapshot(graph, pools_));
    snapshot.info.id = static_cast<SnapshotId>(snapshots_.size() + 1);
    snapshot.info.run = run;
    snapshot.info.graph = name;
    snapshot.info.fingerprint = FingerprintOf(graph);
    snapshot.info.everything = FingerprintOf(graph, FingerprintScope::kEverything);
    snapshot.info.nodes = snapshot.encoded.printed_nodes;
    snapshot.info.attributes = attributes;
    snapshot.next_stable_id = graph.module().next_stable_id();
    return snapshot;
  }

  /// The same graph under another name.
  Result<NewSnapshot> Copy(RunId run, std::string_view name, SnapshotId same) {
    STRATA_RETURN_IF_ERROR(CheckUsable());
    NewSnapshot copy;
    const StoredSnapshot& original = snapshots_[static_cast<size_t>(same) - 1];
    copy.info = original.info;
    copy.encoded = original.encoded;
    STRATA_TRY(Cursor row, database_->Scan(TableId::kSnapshot, Number(same)));
    STRATA_TRY(const bool found, row.Next());
    STRATA_CHECK(found);
    copy.encoded.root = row.Bytes(5);
    copy.info.id = static_cast<SnapshotId>(snapshots_.size() + 1);
    copy.info.run = run;
    copy.info.graph = name;
    return copy;
  }

  Status Store(NewSnapshot& snapshot) {
    STRATA_RETURN_IF_ERROR(pools_.Flush(*database_, packer_));
    const SnapshotInfo& info = snapshot.info;
    STRATA_TRY(const int64_t graph, GraphRow(info.run, info.graph));
    STRATA_RETURN_IF_ERROR(database_->Put(
        TableId::kSnapshot, Count(TableId::kSnapshot),
        {graph, FingerprintBytes(info.fingerprint), FingerprintBytes(info.everything), info.nodes,
         info.attributes, snapshot.encoded.root}));
    if (snapshot.next_stable_id > next_stable_id_) {
      next_stable_id_ = snapshot.next_stable_id;
      STRATA_RETURN_IF_ERROR(database_->Put(
          TableId::kCounter, NextStableIdCounter(kSchemaVersion),
          {std::string_view("next_stable_id"), static_cast<int64_t>(next_stable_id_)}));
    }
    // What is kept of thousands of snapshots is small.
    if (!pools_.shares_nodes) {
      pools_.ForgetNodes();
      snapshot.encoded.chunks = {};
    }
    snapshot.encoded.root = {};
    snapshot.info.attributes = {};
    snapshots_.push_back({std::move(snapshot.info), std::move(snapshot.encoded)});
    return Ok();
  }

  ChangeCounts CountedChanges(const PassRecord& pass) const {
    if (pass.before == pass.after || pass.after == SnapshotId::kNone) return {};
    static const EncodedSnapshot kNothing;
    const EncodedSnapshot& before = pass.before == SnapshotId::kNone
                                        ? kNothing
                                        : snapshots_[static_cast<size_t>(pass.before) - 1].encoded;
    return CountChanges(before, snapshots_[static_cast<size_t>(pass.after) - 1].encoded, pools_);
  }

  Status StoreExecuted(RunId run, ExecutedRange range) {
    STRATA_TRY(const int64_t graph, GraphRow(run, range.graph));
    LastExecuted& last = executed_[graph];
    if (last.row != 0 && last.range.fingerprint == range.fingerprint &&
        last.range.last_step + 1 == range.first_step) {
      range.first_step = last.range.first_step;
    } else {
      last.row = Count(TableId::kExecuted);
    }
    last.range = range;
    return database_->Put(
        TableId::kExecuted, last.row,
        {graph, range.first_step, range.last_step, FingerprintBytes(range.fingerprint)});
  }

  static constexpr size_t kPartBytes = size_t{4} << 20;

  struct LastExecuted {
    int64_t row = 0;
    ExecutedRange range;
  };

  std::string path_;
  std::optional<AtomicFile> aside_;  // outlives the database, which has its file open
  FileLock lock_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<SnapshotLoader> loader_;
  Packer packer_;
  SnapshotPools pools_;
  std::vector<RunInfo> runs_;
  std::vector<StoredSnapshot> snapshots_;
  std::map<std::pair<RunId, std::string>, int64_t> graphs_;
  std::map<int64_t, LastExecuted> executed_;  // by row of the graph
  ContentIndex part_rows_;                    // rows of artifact data by content
  std::array<int64_t, kNumTables> rows_{};
  std::array<bool, kNumTables> counted_{};  // rows_ differs from the file
  uint64_t next_stable_id_ = 1;
  std::optional<DiskReserve> reserve_;  // of a live trace
  std::optional<Error> failed_;
  bool in_transaction_ = false, finished_ = false;
};

/// A mistyped name must not replace a file that is not a trace.
Status CheckReplaceable(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return Ok();
  if (!S_ISREG(info.st_mode)) {
    return Error(ErrorCode::kUnsupported, "cannot write: {}: a trace needs a file; give its name",
                 path);
  }
  if (info.st_size > 0 && !LooksLikeTrace(path)) {
    return Error(ErrorCode::kInvalid,
                 "cannot write: {}: it exists and is not a trace; remove it or give another name",
                 path);
  }
  return Ok();
}

}  // namespace

Result<std::unique_ptr<TraceWriter>> TraceWriter::Create(const std::string& path, Mode mode) {
  if (path == "-") {
    return Error(ErrorCode::kUnsupported,
                 "cannot write: standard output: a trace needs a file; give its name");
  }
  STRATA_RETURN_IF_ERROR(CheckReplaceable(path));
  STRATA_TRY(AtomicFile file, AtomicFile::Create(path));
  STRATA_TRY(const std::string image, Database::EmptyImage());
  STRATA_RETURN_IF_ERROR(file.Append(image));

  std::optional<AtomicFile> aside;
  std::unique_ptr<Database> database;
  FileLock lock;
  if (mode == Mode::kLive) {
    // The log of a killed run of that name would be taken for ours.
    for (const char* suffix : {"-wal", "-shm", "-journal"})
      ::unlink((file.target_path() + suffix).c_str());
    STRATA_TRY(lock, file.CommitAndLock());
    STRATA_TRY(database, Database::Open(file.target_path(), path, Database::Mode::kWrite));
    // Some network file systems refuse a write-ahead log; then writers and readers take turns.
    (void)database->Execute("PRAGMA journal_mode = WAL");
    STRATA_RETURN_IF_ERROR(database->Execute("PRAGMA synchronous = NORMAL"));
  } else {
    STRATA_TRY(database, Database::Open(file.partial_path(), path, Database::Mode::kWrite));
    STRATA_RETURN_IF_ERROR(
        database->Execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF"));
    aside = std::move(file);
  }
  return std::unique_ptr<TraceWriter>(
      std::make_unique<Writer>(path, std::move(database), std::move(aside), std::move(lock)));
}

}  // namespace strata
