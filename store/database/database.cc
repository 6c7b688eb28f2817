#include "store/database/database.h"

#include <bit>
#include <cerrno>
#include <cmath>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <sqlite3.h>

#include "base/file.h"
#include "store/database/hash.h"

namespace strata {
namespace {

constexpr int kBusyTimeoutMs = 5000;
/// Sums the cells of a row. NULL, numbers and bytes cannot be taken for each other.
class RowSum {
 public:
  RowSum(const Table& table, int64_t id) : seed_(SumBytes(table.name)) { Integer(id); }

  void Null() { Word(0, 0); }
  void Integer(int64_t value) { Word(1, static_cast<uint64_t>(value)); }
  void Real(double value) { Word(2, std::bit_cast<uint64_t>(value)); }
  void Bytes(std::string_view bytes) { Word(3, SumBytes(bytes)); }

  int64_t Total() const {
    const auto* begin = reinterpret_cast<const char*>(words_.data());
    return static_cast<int64_t>(SumBytes({begin, size_ * sizeof(uint64_t)}, seed_));
  }

 private:
  void Word(uint64_t tag, uint64_t value) {
    words_[size_++] = tag;
    words_[size_++] = value;
  }

  static constexpr size_t kMaxColumns = 20;
  uint64_t seed_;
  std::array<uint64_t, 2 * kMaxColumns> words_;
  size_t size_ = 0;
};

std::string_view ColumnBytes(sqlite3_stmt* statement, int column) {
  // The order of the two calls is prescribed.
  const void* data = sqlite3_column_blob(statement, column);
  const int size = sqlite3_column_bytes(statement, column);
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

/// A path as part of an SQLite URI.
std::string EscapeUri(std::string_view path) {
  std::string uri;
  for (char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '_' || c == '-';
    if (plain) {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return uri;
}

Error NotATrace(const std::string& path) {
  return Error(ErrorCode::kInvalid,
               "not a trace: {}: give a file made by 'strata import', 'opt' or 'train'", path);
}

bool IsMissingOrEmpty(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) != 0 || info.st_size == 0;
}

}  // namespace

Cursor::Cursor(Cursor&& other) noexcept
    : database_(other.database_),
      table_(other.table_),
      statement_(std::exchange(other.statement_, nullptr)),
      id_(other.id_),
      ended_(other.ended_) {}

Cursor::~Cursor() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Result<bool> Cursor::Next() {
  if (ended_) return false;
  const int code = sqlite3_step(statement_);
  ended_ = code != SQLITE_ROW;
  if (code == SQLITE_DONE) return false;
  if (code != SQLITE_ROW) return database_->LastError(table_, id_);
  const Table& table = TableOf(table_);
  id_ = sqlite3_column_int64(statement_, 0);
  RowSum sum(table, id_);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    const int place = static_cast<int>(i) + 1;
    const int type = sqlite3_column_type(statement_, place);
    bool expected = false;
    switch (type) {
      case SQLITE_NULL:
        expected = column.type == CellType::kReference || column.type == CellType::kReal;
        sum.Null();
        break;
      case SQLITE_INTEGER:
        expected = column.type == CellType::kReference || column.type == CellType::kInteger;
        sum.Integer(sqlite3_column_int64(statement_, place));
        break;
      case SQLITE_FLOAT:
        expected = column.type == CellType::kReal;
        sum.Real(sqlite3_column_double(statement_, place));
        break;
      default:
        expected = column.type == (type == SQLITE_TEXT ? CellType::kText : CellType::kBlob);
        sum.Bytes(ColumnBytes(statement_, place));
    }
    if (!expected) return Damaged(fmt::format("column {} has the wrong type", column.name));
  }
  const int last = static_cast<int>(table.columns.size()) + 1;
  if (sqlite3_column_int64(statement_, last) != sum.Total()) return Damaged("checksum differs");
  return true;
}

int64_t Cursor::Integer(size_t i) const {
  return sqlite3_column_int64(statement_, static_cast<int>(i) + 1);
}

double Cursor::Real(size_t i) const {
  const int place = static_cast<int>(i) + 1;
  if (sqlite3_column_type(statement_, place) == SQLITE_NULL) return std::nan("");
  return sqlite3_column_double(statement_, place);
}

std::string_view Cursor::Bytes(size_t i) const {
  return ColumnBytes(statement_, static_cast<int>(i) + 1);
}

Error Cursor::Damaged(std::string_view what) const {
  return database_->Damaged(table_, id_, what);
}

Result<std::string> Database::EmptyImage() {
  STRATA_TRY(auto database, OpenUri("file::memory:", "memory", Mode::kWrite));
  STRATA_RETURN_IF_ERROR(database->Execute(SchemaSql().c_str()));
  for (size_t i = 0; i < kNumTables; ++i) {
    const auto table = static_cast<TableId>(i);
    // Counters count themselves, too.
    const int64_t rows = table == TableId::kCounter ? NextStableIdCounter(kSchemaVersion) : 0;
    STRATA_RETURN_IF_ERROR(database->Put(TableId::kCounter, CounterOf(table),
                                         {std::string_view(TableOf(table).name), rows}));
  }
  STRATA_RETURN_IF_ERROR(database->Put(TableId::kCounter, NextStableIdCounter(kSchemaVersion),
                                       {std::string_view("next_stable_id"), int64_t{1}}));
  sqlite3_int64 size = 0;
  unsigned char* image = sqlite3_serialize(database->handle_, "main", &size, 0);
  if (image == nullptr) return Error(ErrorCode::kInternal, "cannot make an empty trace");
  std::string bytes(reinterpret_cast<const char*>(image), static_cast<size_t>(size));
  sqlite3_free(image);
  return bytes;
}

Result<std::unique_ptr<Database>> Database::Open(const std::string& file, const std::string& path,
                                                 Mode mode) {
  const std::string uri = "file:" + EscapeUri(file);
  STRATA_TRY(auto database, OpenUri(uri, path, mode));
  Status identity = database->CheckIdentity();
  if (!identity && mode == Mode::kRead && identity.error().code() == ErrorCode::kIo &&
      IsMissingOrEmpty(file + "-wal")) {
    // SQLite wants to make helper files beside a trace that a killed run left, also to read it.
    // Where that is forbidden and no run's log waits to be read, the file stands for itself.
    STRATA_TRY(database, OpenUri(uri + "?immutable=1", path, mode));
    identity = database->CheckIdentity();
  }
  if (!identity) return std::move(identity).error();
  return database;
}

Result<std::unique_ptr<Database>> Database::OpenExisting(const std::string& path) {
  // Only looked at, not opened: closing a file drops the locks that SQLite holds on it, should this
  // process be writing it.
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return ReadError(path, errno);
  if (S_ISDIR(info.st_mode)) return Error(ErrorCode::kIo, "is a directory: {}: give a file", path);
  if (!S_ISREG(info.st_mode) || info.st_size == 0) return NotATrace(path);
  if (::access(path.c_str(), R_OK) != 0) return ReadError(path, errno);
  return Open(path, path, Mode::kRead);
}

Result<std::unique_ptr<Database>> Database::OpenUri(const std::string& uri, const std::string& path,
                                                    Mode mode) {
  sqlite3* handle = nullptr;
  const int access = mode == Mode::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  const int code = sqlite3_open_v2(uri.c_str(), &handle,
                                   access | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  if (handle == nullptr) return Error(ErrorCode::kInternal, "out of memory: {}", path);
  std::unique_ptr<Database> database(new Database(handle, path));
  if (code != SQLITE_OK) return database->LastError();
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  // A file from elsewhere must not run code of its own, and damage is to be found early.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  STRATA_RETURN_IF_ERROR(database->Execute("PRAGMA cell_size_check = ON"));
  return database;
}

Database::~Database() {
  for (auto& queries : statements_) {
    for (sqlite3_stmt* statement : queries)
      sqlite3_finalize(statement);
  }
  sqlite3_close(handle_);
}

Status Database::CheckIdentity() {
  Result<int64_t> application = QueryInteger("PRAGMA application_id");
  if (!application) {
    if ((sqlite3_errcode(handle_) & 0xff) == SQLITE_NOTADB) return NotATrace(path_);
    return std::move(application).error();
  }
  if (*application != kApplicationId) return NotATrace(path_);
  STRATA_TRY(const int64_t version, QueryInteger("PRAGMA user_version"));
  if (version > kSchemaVersion) {
    return Error(ErrorCode::kUnsupported,
                 "written by a newer Strata: {}: its schema is {}, this build reads up to {}; "
                 "update Strata",
                 path_, version, kSchemaVersion);
  }
  if (version < 1) {
    return DamagedFile(fmt::format("schema version {}", version));
  }
  version_ = version;
  return Ok();
}

Status Database::Execute(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return LastError();
  return Ok();
}

Result<sqlite3_stmt*> Database::Prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(handle_, sql.c_str(), static_cast<int>(sql.size()) + 1, &statement,
                         nullptr) != SQLITE_OK) {
    return LastError();
  }
  return statement;
}

Result<int64_t> Database::QueryInteger(const char* sql) {
  STRATA_TRY(const std::vector<std::string> texts, QueryTexts(sql));
  return texts.empty() ? 0 : std::strtoll(texts.front().c_str(), nullptr, 10);
}

Result<std::vector<std::string>> Database::QueryTexts(const char* sql) {
  STRATA_TRY(sqlite3_stmt * statement, Prepare(sql));
  std::vector<std::string> texts;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW)
    texts.emplace_back(ColumnBytes(statement, 0));
  if (code == SQLITE_DONE) {
    sqlite3_finalize(statement);
    return texts;
  }
  Error error = LastError();
  sqlite3_finalize(statement);
  return error;
}

Status Database::Begin(Mode mode) {
  return Execute(mode == Mode::kRead ? "BEGIN" : "BEGIN IMMEDIATE");
}

Status Database::Commit() {
  return Execute("COMMIT");
}

void Database::Rollback() {
  if (sqlite3_get_autocommit(handle_) == 0)
    sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<sqlite3_stmt*> Database::Prepared(TableId id, Query query) {
  sqlite3_stmt*& statement = statements_[static_cast<size_t>(id)][static_cast<size_t>(query)];
  if (statement != nullptr) return statement;
  const Table& table = TableOf(id);
  const std::string columns = ColumnList(table);
  std::string sql;
  switch (query) {
    case Query::kPut:
      sql = fmt::format("INSERT OR REPLACE INTO {}({}) VALUES (?", table.name, columns);
      for (size_t i = 0; i <= table.columns.size(); ++i)
        sql += ", ?";
      sql += ")";
      break;
    case Query::kScan:
      sql = fmt::format("SELECT {} FROM {} WHERE id >= ? ORDER BY id", columns, table.name);
      break;
    case Query::kFindAtMost:
      sql = fmt::format("SELECT {} FROM {} WHERE id <= ? ORDER BY id DESC LIMIT 1", columns,
                        table.name);
      break;
  }
  Result<sqlite3_stmt*> prepared = Prepare(sql);
  if (!prepared) return LastError(id, 0);
  return statement = *prepared;
}

Status Database::Put(TableId id, int64_t row, std::initializer_list<Cell> cells) {
  STRATA_TRY(sqlite3_stmt * statement, Prepared(id, Query::kPut));
  const Table& table = TableOf(id);
  STRATA_CHECK(cells.size() == table.columns.size(), "{}", table.name);
  RowSum sum(table, row);
  sqlite3_bind_int64(statement, 1, row);
  int place = 1;
  int code = SQLITE_OK;
  for (const Cell& cell : cells) {
    const CellType type = table.columns[static_cast<size_t>(place - 1)].type;
    ++place;
    const char* data = cell.bytes.empty() ? "" : cell.bytes.data();
    switch (type) {
      case CellType::kReference:
      case CellType::kInteger:
        if (type == CellType::kReference && cell.integer == 0) {
          sqlite3_bind_null(statement, place);
          sum.Null();
        } else {
          sqlite3_bind_int64(statement, place, cell.integer);
          sum.Integer(cell.integer);
        }
        break;
      case CellType::kReal:
        if (std::isnan(cell.real)) {
          sqlite3_bind_null(statement, place);
          sum.Null();
        } else {
          // SQLite keeps no negative zero.
          sqlite3_bind_double(statement, place, cell.real + 0.0);
          sum.Real(cell.real + 0.0);
        }
        break;
      case CellType::kText:
        code = sqlite3_bind_text64(statement, place, data, cell.bytes.size(), SQLITE_STATIC,
                                   SQLITE_UTF8);
        sum.Bytes(cell.bytes);
        break;
      case CellType::kBlob:
        code = sqlite3_bind_blob64(statement, place, data, cell.bytes.size(), SQLITE_STATIC);
        sum.Bytes(cell.bytes);
        break;
    }
    if (code != SQLITE_OK) return LastError();
  }
  sqlite3_bind_int64(statement, place + 1, sum.Total());
  code = sqlite3_step(statement);
  Status status = code == SQLITE_DONE ? Ok() : Status(LastError());
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  return status;
}

Result<Cursor> Database::Scan(TableId table, int64_t first) {
  STRATA_TRY(sqlite3_stmt * statement, Prepared(table, Query::kScan));
  sqlite3_bind_int64(statement, 1, first);
  return Cursor(*this, table, statement);
}

Result<Cursor> Database::FindAtMost(TableId table, int64_t id) {
  STRATA_TRY(sqlite3_stmt * statement, Prepared(table, Query::kFindAtMost));
  sqlite3_bind_int64(statement, 1, id);
  return Cursor(*this, table, statement);
}

}  // namespace strata
