#include "store/trace_rows.h"

namespace strata {

int64_t TraceRows::NewRow(TableId table) {
  const auto index = static_cast<size_t>(table);
  counted_[index] = true;
  return ++rows_[index];
}

Result<int64_t> TraceRows::GraphRow(RunId run, std::string_view name) {
  const auto [place, is_new] = graphs_.try_emplace({run, std::string(name)}, 0);
  if (is_new) {
    place->second = NewRow(TableId::kGraph);
    STRATA_RETURN_IF_ERROR(database_->Put(TableId::kGraph, place->second, {IntegerOf(run), name}));
  }
  return place->second;
}

Status TraceRows::CheckUsable() const {
  if (error_) return *error_;
  STRATA_CHECK(!ended_, "{}: written after its end", path_);
  return Ok();
}

Status TraceRows::End() {
  STRATA_RETURN_IF_ERROR(CheckUsable());
  if (in_transaction_) STRATA_RETURN_IF_ERROR(KeepError(Commit()));
  ended_ = true;
  return Ok();
}

Status TraceRows::Commit() {
  STRATA_RETURN_IF_ERROR(PutCounters());
  in_transaction_ = false;
  return database_->Commit();
}

Status TraceRows::PutCounters() {
  for (size_t i = 0; i < kNumTables; ++i) {
    if (!std::exchange(counted_[i], false)) continue;
    const auto table = static_cast<TableId>(i);
    STRATA_RETURN_IF_ERROR(database_->Put(TableId::kCounter, CounterOf(table),
                                          {std::string_view(TableOf(table).name), rows_[i]}));
  }
  return Ok();
}

Status TraceRows::KeepError(Status status) {
  if (!status) {
    in_transaction_ = false;
    database_->Rollback();
    error_ = status.error();
  }
  return status;
}

}  // namespace strata
