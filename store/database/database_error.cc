#include <cerrno>
#include <cstring>
#include <sys/resource.h>

#include <sqlite3.h>

#include "store/database/database.h"

// Errors of SQLite as messages that a user can act on.
namespace strata {
namespace {

constexpr std::string_view kMakeItAgain =
    "record or import it again; 'strata check' lists what is damaged";

/// SQLite tidies up after a write that failed, which may hide why it did.
bool IsFileSizeLimit(int code, int system_error) {
  if (system_error == EFBIG) return true;
  rlimit limit{};
  return code == SQLITE_IOERR_WRITE && system_error == 0 &&
         ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

Error Database::DamagedFile(std::string_view what) const {
  return Error(ErrorCode::kCorrupt, "damaged trace: {}: {}: {}", path_, what, kMakeItAgain);
}

Error Database::Damaged(TableId table, int64_t row, std::string_view what) const {
  last_damage_ = {table, row, std::string(what)};
  const std::string place = row == 0 ? std::string(TableOf(table).name)
                                     : fmt::format("{}, row {}", TableOf(table).name, row);
  return Error(ErrorCode::kCorrupt, "damaged trace: {}: table {}: {}: {}", path_, place, what,
               kMakeItAgain);
}

Error Database::LastError(TableId table, int64_t row) const {
  switch (sqlite3_errcode(handle_) & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // a missing table or column
    case SQLITE_SCHEMA:
      return Damaged(table, row,
                     fmt::format("{}{}", row == 0 ? "" : "after it: ", sqlite3_errmsg(handle_)));
    default:
      return LastError();
  }
}

Error Database::LastError() const {
  const int system_error = sqlite3_system_errno(handle_);
  switch (sqlite3_errcode(handle_) & 0xff) {
    case SQLITE_FULL:
      return Error(ErrorCode::kIo, "disk full: {}: free some space or write to another disk",
                   path_);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error(ErrorCode::kIo, "in use: {}: another process is writing it, wait for its end",
                   path_);
    case SQLITE_TOOBIG:
      return Error(ErrorCode::kUnsupported, "too large for a trace: {}: one piece has over 1 GB",
                   path_);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return Error(ErrorCode::kIo,
                   "cannot open: {}: no permission, or a killed run left it in a folder that may "
                   "not be written; copy it with its '-wal' file to a folder of yours",
                   path_);
    case SQLITE_IOERR:
      if (IsFileSizeLimit(sqlite3_extended_errcode(handle_), system_error)) {
        return Error(ErrorCode::kIo, "file size limit reached: {}: raise the limit (ulimit -f)",
                     path_);
      }
      return Error(ErrorCode::kIo, "cannot read or write: {}: {}, choose another place", path_,
                   system_error == 0 ? sqlite3_errmsg(handle_) : std::strerror(system_error));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:
    case SQLITE_SCHEMA:
      return DamagedFile(sqlite3_errmsg(handle_));
    default:
      return Error(ErrorCode::kIo, "cannot read or write: {}: {}, choose another place", path_,
                   sqlite3_errmsg(handle_));
  }
}

}  // namespace strata
