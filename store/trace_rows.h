#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "store/database/database.h"
#include "store/database/schema.h"
#include "store/trace.h"

namespace strata {

/// An id or an enum value as a cell of a row.
template <class IdType>
int64_t IntegerOf(IdType id) {
  return static_cast<int64_t>(id);
}

/// The rows of a trace that is being written: transactions, ids of new rows, and the counters by
/// which a reader notices that rows are lost.
class TraceRows {
 public:
  enum class Commits : uint8_t {
    kEachTransaction,  ///< other processes read the file
    kAtEnd,            ///< the file has no readers: all transactions are one
  };

  /// `path`: for messages. Takes over the database, an empty trace.
  TraceRows(std::string path, std::unique_ptr<Database> database, Commits commits)
      : path_(std::move(path)), database_(std::move(database)), commits_(commits) {}

  /// Runs `store`, which returns a Status, as one transaction, together with the counters of the
  /// tables that it touched. What is in memory is ahead of the file after an error, so nothing can
  /// follow one. Errors: those of `store`, of the database, and the first error once more.
  template <class Store>
  Status Transact(Store&& store) {
    STRATA_RETURN_IF_ERROR(CheckUsable());
    return KeepError([&]() -> Status {
      if (!in_transaction_) STRATA_RETURN_IF_ERROR(database_->Begin(Database::Mode::kWrite));
      in_transaction_ = true;
      STRATA_RETURN_IF_ERROR(store());
      return commits_ == Commits::kAtEnd ? Ok() : Commit();
    }());
  }

  /// The id of a new row.
  int64_t NewRow(TableId table);
  /// How many rows a table has.
  int64_t NumRows(TableId table) const { return rows_[static_cast<size_t>(table)]; }

  /// The row of a graph of a run, made on first use. REQUIRES: in a transaction.
  Result<int64_t> GraphRow(RunId run, std::string_view name);

  /// Errors: the first error of a transaction. REQUIRES: not closed.
  Status CheckUsable() const;
  const std::optional<Error>& error() const { return error_; }
  /// For rows that are written after an error, which do not touch the counters.
  void ForgetError() { error_.reset(); }

  /// Commits what is left. Only `database` and `Close` may follow.
  Status End();
  /// Closes the file.
  void Close() { database_.reset(); }

  Database& database() { return *database_; }

 private:
  Status Commit();
  Status PutCounters();
  /// Rolls back after an error, and keeps it.
  Status KeepError(Status status);

  std::string path_;
  std::unique_ptr<Database> database_;
  Commits commits_;
  std::array<int64_t, kNumTables> rows_{};
  std::array<bool, kNumTables> counted_{};  // rows_ differs from the file
  std::map<std::pair<RunId, std::string>, int64_t> graphs_;
  std::optional<Error> error_;
  bool in_transaction_ = false, ended_ = false;
};

}  // namespace strata
