#include <limits>

#include "store/births.h"
#include "store/database.h"
#include "store/pack.h"
#include "store/pool.h"
#include "store/snapshot_loader.h"
#include "store/trace.h"

namespace strata {
namespace {

constexpr size_t kBirthsColumn = 15;
constexpr size_t kArtifactColumn = 5;
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
    for (size_t i = 0; i < kNumTables; ++i)
      CheckTable(static_cast<TableId>(i));
    CheckReferences();
    CheckSnapshots();
    database_.Rollback();
    // What is left is whether rows that are sound by themselves fit together.
    if (findings_.empty()) {
      const auto reader = TraceReader::Open(database_.path());
      if (!reader) findings_.push_back({"", 0, reader.error().message()});
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
      const auto bytes = Unpack(row.Bytes(kArtifactColumn), kMaxUnpackedBytes);
      if (!bytes) Add(table, row.id(), "its data does not unpack");
    }
    if (table == TableId::kSnapshot) snapshots_.push_back(static_cast<SnapshotId>(row.id()));
    return 1;
  }

  int64_t Counter(TableId table) const {
    if (table == TableId::kCounter) return kNextStableIdCounter;
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

  void CheckSnapshots() {
    SnapshotLoader loader(database_);
    for (SnapshotId id : snapshots_) {
      const auto module = loader.Load(id);
      if (module) continue;
      const Damage& damage = database_.last_damage();
      if (damage.table == TableId::kSnapshot) {
        AddLast(module.error());
      } else {
        Add(TableId::kSnapshot, static_cast<int64_t>(id),
            fmt::format("it needs {}, row {}: {}", TableOf(damage.table).name, damage.row,
                        damage.what));
      }
    }
  }

  void Add(TableId table, int64_t row, std::string what) {
    findings_.push_back({TableOf(table).name, row, std::move(what)});
  }
  void AddFile(std::string what) { findings_.push_back({"", 0, std::move(what)}); }
  /// An error that came from Database::Damaged, if its code says so.
  void AddLast(const Error& error) {
    if (error.code() != ErrorCode::kCorrupt) return AddFile(error.message());
    const Damage& damage = database_.last_damage();
    Add(damage.table, damage.row, damage.what);
  }

  Database& database_;
  std::vector<int64_t> counters_;
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
