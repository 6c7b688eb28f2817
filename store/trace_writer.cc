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
#include "store/database/database.h"
#include "store/database/disk_reserve.h"
#include "store/database/pack.h"
#include "store/run_end.h"
#include "store/snapshot_loader.h"
#include "store/snapshot_writer.h"
#include "store/trace_rows.h"

namespace strata {
namespace {

class Writer final : public TraceWriter {
 public:
  /// `aside` is the file to be given its name by Finish, if it has not got it.
  /// `lock` is held until the end.
  Writer(std::string path, std::unique_ptr<Database> database, std::optional<AtomicFile> aside,
         FileLock lock)
      : path_(std::move(path)),
        aside_(std::move(aside)),
        lock_(std::move(lock)),
        rows_(path_, std::move(database),
              aside_ ? TraceRows::Commits::kAtEnd : TraceRows::Commits::kEachTransaction),
        loader_(std::make_unique<SnapshotLoader>(rows_.database())) {
    if (!aside_) reserve_.emplace(path_);
  }

  Result<RunId> BeginRun(const RunInfo& run) override {
    runs_.push_back(run);
    const auto id = static_cast<RunId>(runs_.size());
    STRATA_RETURN_IF_ERROR(rows_.Transact([&]() -> Status {
      rows_.NewRow(TableId::kRun);
      return PutRun(id, RunStatus::kRunning);
    }));
    return id;
  }

  Result<SnapshotId> AddSnapshot(RunId run, std::string_view name, const Graph& graph,
                                 std::string_view attributes) override {
    STRATA_TRY(SnapshotWriter::NewSnapshot snapshot, Encode(run, name, graph, attributes));
    STRATA_RETURN_IF_ERROR(rows_.Transact([&] { return snapshots_.Store(snapshot); }));
    return snapshot.info.id;
  }

  Status UpdateRun(RunId id, const RunInfo& run) override {
    runs_[static_cast<size_t>(id) - 1] = run;
    return rows_.Transact([&] { return PutRun(id, RunStatus::kRunning); });
  }

  Result<SnapshotId> AddSnapshotOf(RunId run, std::string_view name, SnapshotId same,
                                   std::string_view attributes) override {
    STRATA_TRY(SnapshotWriter::NewSnapshot snapshot, snapshots_.Copy(run, name, same));
    snapshot.info.attributes = attributes;
    STRATA_RETURN_IF_ERROR(rows_.Transact([&] { return snapshots_.Store(snapshot); }));
    return snapshot.info.id;
  }

  Result<std::unique_ptr<Module>> LoadSnapshot(SnapshotId id) override {
    STRATA_RETURN_IF_ERROR(rows_.CheckUsable());
    return loader_->Load(id);
  }

  Result<StoredPass> RecordPass(RunId run, PassRecord pass, const Graph* after) override {
    std::optional<SnapshotWriter::NewSnapshot> snapshot;
    if (after != nullptr) {
      STRATA_TRY(snapshot, Encode(run, pass.graph, *after, {}));
      pass.after = snapshot->info.id;
    }
    const std::string births = packer_.Pack(EncodeBirths(std::exchange(pass.births, {})));
    auto id = PassId::kNone;
    const Status stored = rows_.Transact([&]() -> Status {
      if (snapshot) STRATA_RETURN_IF_ERROR(snapshots_.Store(*snapshot));
      STRATA_CHECK(pass.counts || RunOf(run).kind != RunKind::kImport);
      if (!pass.counts) pass.counts = snapshots_.CountedChanges(pass);
      STRATA_TRY(const int64_t graph, rows_.GraphRow(run, pass.graph));
      id = static_cast<PassId>(rows_.NewRow(TableId::kPass));
      return rows_.database().Put(
          TableId::kPass, IntegerOf(id),
          {IntegerOf(run), int64_t{pass.index}, pass.name, pass.options, IntegerOf(pass.outcome),
           pass.wall_ns, graph, IntegerOf(pass.before), IntegerOf(pass.after),
           pass.counts->inserted, pass.counts->deleted, pass.counts->changed, pass.counts->moved,
           pass.error, pass.reproduce, births});
    });
    if (!stored) return stored.error();
    return StoredPass{id, std::move(pass)};
  }

  Status RecordExecuted(RunId run, const ExecutedRange& range) override {
    return rows_.Transact([&] { return StoreExecuted(run, range); });
  }

  Status RecordStep(RunId run, const StepRecord& step,
                    std::span<const Executed> executed) override {
    return rows_.Transact([&]() -> Status {
      for (const auto& [graph, fingerprint] : executed) {
        STRATA_RETURN_IF_ERROR(
            StoreExecuted(run, {std::string(graph), step.step, step.step, fingerprint}));
      }
      return rows_.database().Put(
          TableId::kStep, rows_.NewRow(TableId::kStep),
          {IntegerOf(run), step.step, step.loss, step.grad_norm, step.wall_ns});
    });
  }

  Result<ArtifactId> AddArtifact(RunId run, std::string_view name, std::string_view kind,
                                 std::string_view bytes, std::string_view attributes) override {
    auto id = ArtifactId::kNone;
    const Status stored = rows_.Transact([&]() -> Status {
      std::vector<int64_t> parts;
      STRATA_RETURN_IF_ERROR(AddParts(bytes, parts));
      id = static_cast<ArtifactId>(rows_.NewRow(TableId::kArtifact));
      return rows_.database().Put(TableId::kArtifact, IntegerOf(id),
                                  {IntegerOf(run), name, kind, attributes,
                                   static_cast<int64_t>(bytes.size()), EncodeParts(parts)});
    });
    if (!stored) return stored.error();
    return id;
  }

  Status AppendArtifact(ArtifactId id, std::string_view bytes) override {
    return rows_.Transact([&]() -> Status {
      STRATA_TRY(Cursor row, rows_.database().Scan(TableId::kArtifact, IntegerOf(id)));
      STRATA_TRY(const bool found, row.Next());
      std::optional<std::vector<int64_t>> parts;
      if (found) parts = DecodeParts(row.Bytes(5));
      if (!parts) return row.Damaged("its list of parts does not decode");
      const std::string name = row.String(1), kind = row.String(2), attributes = row.String(3);
      const int64_t run = row.Integer(0), size = row.Integer(4);
      STRATA_RETURN_IF_ERROR(AddParts(bytes, *parts));
      return rows_.database().Put(TableId::kArtifact, IntegerOf(id),
                                  {run, name, kind, attributes,
                                   size + static_cast<int64_t>(bytes.size()), EncodeParts(*parts)});
    });
  }

  Status AddEvents(RunId run, std::span<const EventRecord> events) override {
    return rows_.Transact([&]() -> Status {
      for (const EventRecord& event : events) {
        STRATA_RETURN_IF_ERROR(
            rows_.database().Put(TableId::kEvent, rows_.NewRow(TableId::kEvent),
                                 {IntegerOf(run), event.kind, event.name, event.start_ns,
                                  event.duration_ns, IntegerOf(event.node), event.attributes}));
      }
      return Ok();
    });
  }

  Status EndRun(RunId run, RunStatus status) override {
    STRATA_CHECK(status != RunStatus::kRunning);
    return rows_.Transact([&] { return PutRun(run, status); });
  }

  Status Finish() override {
    STRATA_RETURN_IF_ERROR(rows_.End());
    loader_.reset();
    if (!aside_) {
      STRATA_RETURN_IF_ERROR(rows_.database().Execute("PRAGMA wal_checkpoint(TRUNCATE)"));
      // Without a log the file can be read in a read-only folder. A concurrent reader prevents the
      // change; the trace is complete nevertheless.
      STRATA_RETURN_IF_ERROR(rows_.database().Execute("PRAGMA busy_timeout = 200"));
      (void)rows_.database().Execute("PRAGMA journal_mode = DELETE");
    }
    rows_.Close();
    return aside_ ? aside_->Commit() : Ok();
  }

  void EndAfterError(RunId run) override {
    const std::string why = rows_.error() ? rows_.error()->message() : "";
    reserve_.reset();
    if (!StoreFailure(run, why)) {
      // The log that is stored into the file makes room for another.
      (void)rows_.database().Execute("PRAGMA wal_checkpoint(TRUNCATE)");
      if (!StoreFailure(run, why)) return;
    }
    rows_.ForgetError();
    (void)Finish();
  }

  uint64_t next_stable_id() const override { return snapshots_.next_stable_id(); }
  const SnapshotInfo& snapshot(SnapshotId id) const override { return snapshots_.info(id); }
  const std::string& path() const override { return path_; }

 private:
  /// Stores bytes in rows of artifact data, equal ones once.
  Status AddParts(std::string_view bytes, std::vector<int64_t>& parts) {
    while (!bytes.empty()) {
      const std::string_view part = bytes.substr(0, kPartBytes);
      bytes.remove_prefix(part.size());
      const auto next = static_cast<uint32_t>(rows_.NumRows(TableId::kArtifactData));
      const auto [row, is_new] = part_rows_.Emplace(HashBytes(part), next + 1);
      parts.push_back(*row);
      if (!is_new) continue;
      STRATA_RETURN_IF_ERROR(
          rows_.database().Put(TableId::kArtifactData, rows_.NewRow(TableId::kArtifactData),
                               {static_cast<int64_t>(part.size()), packer_.Pack(part)}));
    }
    return Ok();
  }

  const RunInfo& RunOf(RunId id) const { return runs_[static_cast<size_t>(id) - 1]; }

  /// Counts in memory may be ahead of the file.
  Status StoreFailure(RunId run, std::string_view why) {
    STRATA_RETURN_IF_ERROR(rows_.database().Begin(Database::Mode::kWrite));
    const Status stored = [&]() -> Status {
      STRATA_RETURN_IF_ERROR(PutRun(run, RunStatus::kFailed));
      STRATA_TRY(ArtifactAppender appender, ArtifactAppender::Begin(rows_.database()));
      STRATA_RETURN_IF_ERROR(AppendRunEnd(appender, run, why));
      STRATA_RETURN_IF_ERROR(appender.End());
      return rows_.database().Commit();
    }();
    if (!stored) rows_.database().Rollback();
    return stored;
  }

  Status PutRun(RunId id, RunStatus status) {
    const RunInfo& run = RunOf(id);
    return rows_.database().Put(
        TableId::kRun, IntegerOf(id),
        {IntegerOf(run.kind), run.is_of_all_ranks ? kAllRanks : int64_t{run.rank},
         int64_t{run.world}, run.source, run.command, run.pipeline, run.config, IntegerOf(status)});
  }

  Result<SnapshotWriter::NewSnapshot> Encode(RunId run, std::string_view name, const Graph& graph,
                                             std::string_view attributes) {
    // Nodes of a log have new ids in each of its texts, so none is ever found again.
    const bool shares_nodes = !std::ranges::all_of(
        runs_, [](const RunInfo& info) { return info.kind == RunKind::kImport; });
    return snapshots_.Encode(run, name, graph, attributes, shares_nodes);
  }

  Status StoreExecuted(RunId run, ExecutedRange range) {
    STRATA_TRY(const int64_t graph, rows_.GraphRow(run, range.graph));
    LastExecuted& last = executed_[graph];
    if (last.row != 0 && last.range.fingerprint == range.fingerprint &&
        last.range.last_step + 1 == range.first_step) {
      range.first_step = last.range.first_step;
    } else {
      last.row = rows_.NewRow(TableId::kExecuted);
    }
    last.range = range;
    return rows_.database().Put(
        TableId::kExecuted, last.row,
        {graph, range.first_step, range.last_step, FingerprintBytes(range.fingerprint)});
  }

  static constexpr size_t kPartBytes = size_t{4} << 20;

  struct LastExecuted {
    int64_t row = 0;
    ExecutedRange range;
  };

  std::string path_;
  std::optional<AtomicFile> aside_;  // outlives the rows, whose database has its file open
  FileLock lock_;
  TraceRows rows_;
  std::unique_ptr<SnapshotLoader> loader_;
  Packer packer_;
  SnapshotWriter snapshots_{rows_, packer_};
  std::vector<RunInfo> runs_;
  std::map<int64_t, LastExecuted> executed_;  // by row of the graph
  ContentIndex part_rows_;                    // rows of artifact data by content
  std::optional<DiskReserve> reserve_;        // of a live trace
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
