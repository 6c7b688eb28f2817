#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database/schema.h"

struct sqlite3;
struct sqlite3_stmt;

namespace strata {

/// A cell to be stored. Text and bytes are not copied.
struct Cell {
  Cell(int64_t v) : integer(v) {}           // NOLINT: implicit
  Cell(double v) : real(v) {}               // NOLINT: implicit
  Cell(std::string_view v) : bytes(v) {}    // NOLINT: implicit
  Cell(const std::string& v) : bytes(v) {}  // NOLINT: implicit

  int64_t integer = 0;
  double real = 0;
  std::string_view bytes;  ///< kText, kBlob
};

/// Rows of one table, verified. Views stay valid until the next `Next`.
class Cursor {
 public:
  Cursor(Cursor&& other) noexcept;
  Cursor& operator=(Cursor&&) = delete;
  ~Cursor();

  /// Goes to the next row; false: there is none. Errors: a damaged file, with table and row. After
  /// an error about one row the next call goes on behind it.
  Result<bool> Next();

  int64_t id() const { return id_; }
  /// Column `i` of Table::columns. REQUIRES: it is of that type.
  int64_t Integer(size_t i) const;
  double Real(size_t i) const;
  std::string_view Bytes(size_t i) const;
  std::string String(size_t i) const { return std::string(Bytes(i)); }

  /// An error of code kCorrupt about the current row.
  Error Damaged(std::string_view what) const;

 private:
  friend class Database;
  Cursor(const class Database& database, TableId table, sqlite3_stmt* statement)
      : database_(&database), table_(table), statement_(statement) {}

  const Database* database_;
  TableId table_;
  sqlite3_stmt* statement_;  // of the database's cache, reset by the destructor
  int64_t id_ = 0;
  bool ended_ = false;
};

/// What is wrong with which row; row 0 is the table as a whole.
struct Damage {
  TableId table = TableId::kCounter;
  int64_t row = 0;
  std::string what;
};

/// An SQLite file with the tables of a trace. Rows get their sum when they are written and are
/// compared with it when they are read. Errors name the file and say what to do.
class Database {
 public:
  enum class Mode : uint8_t { kRead, kWrite };

  /// The bytes of a trace without rows.
  static Result<std::string> EmptyImage();

  /// Errors: not a trace, written by a newer Strata. A file that cannot be opened gives an error
  /// of code kIo. `path` names the file in messages, `file` is what is opened.
  static Result<std::unique_ptr<Database>> Open(const std::string& file, const std::string& path,
                                                Mode mode);
  /// Opens a file that a user named, for reading. Errors also: no such file, a directory, an empty
  /// file, no permission.
  static Result<std::unique_ptr<Database>> OpenExisting(const std::string& path);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  Status Execute(const char* sql);
  /// The first cell of the first row of `sql`; 0 when there is none.
  Result<int64_t> QueryInteger(const char* sql);
  /// The first cells of all rows as text.
  Result<std::vector<std::string>> QueryTexts(const char* sql);

  Status Begin(Mode mode);
  Status Commit();
  /// Ends a transaction without storing. Does nothing outside of one.
  void Rollback();

  /// Stores the row `id`, in place of one of that id. REQUIRES: as many cells as the table has
  /// columns.
  Status Put(TableId table, int64_t id, std::initializer_list<Cell> cells);

  /// Rows with ids of at least `first`, in order of ids.
  Result<Cursor> Scan(TableId table, int64_t first = 1);
  /// The row with the greatest id of at most `id`, if any.
  Result<Cursor> FindAtMost(TableId table, int64_t id);

  /// `damaged trace: <file>: table <table>, row <row>: <what>: <what to do>`.
  Error Damaged(TableId table, int64_t row, std::string_view what) const;
  /// What the last call of `Damaged` was about, for programs that list damage.
  const Damage& last_damage() const { return last_damage_; }
  const std::string& path() const { return path_; }
  /// Of the schema.
  int64_t version() const { return version_; }

 private:
  friend class Cursor;
  enum class Query : uint8_t { kPut, kScan, kFindAtMost };

  Database(sqlite3* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  static Result<std::unique_ptr<Database>> OpenUri(const std::string& uri, const std::string& path,
                                                   Mode mode);
  Status CheckIdentity();
  Result<sqlite3_stmt*> Prepared(TableId table, Query query);
  Result<sqlite3_stmt*> Prepare(const std::string& sql);
  Error DamagedFile(std::string_view what) const;
  /// What SQLite's last error means to the user.
  Error LastError() const;
  Error LastError(TableId table, int64_t row) const;

  sqlite3* handle_;
  std::string path_;
  int64_t version_ = kSchemaVersion;
  mutable Damage last_damage_;
  std::array<std::array<sqlite3_stmt*, 3>, kNumTables> statements_{};
};

}  // namespace strata
