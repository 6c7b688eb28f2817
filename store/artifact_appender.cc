#include "store/artifact_appender.h"

#include <string>

#include "store/artifact_parts.h"
#include "store/database/pack.h"

namespace strata {
namespace {

/// The number of rows of a table, as its counter says.
Result<int64_t> CountRows(Database& database, TableId table) {
  STRATA_TRY(Cursor row, database.Scan(TableId::kCounter, CounterOf(table)));
  STRATA_TRY(const bool found, row.Next());
  if (!found || row.id() != CounterOf(table))
    return database.Damaged(TableId::kCounter, CounterOf(table), "it is missing");
  return row.Integer(1);
}

Status PutCounter(Database& database, TableId table, int64_t rows) {
  return database.Put(TableId::kCounter, CounterOf(table),
                      {std::string_view(TableOf(table).name), rows});
}

}  // namespace

Result<ArtifactAppender> ArtifactAppender::Begin(Database& database) {
  ArtifactAppender appender(database);
  STRATA_TRY(appender.artifacts_, CountRows(database, TableId::kArtifact));
  STRATA_TRY(appender.parts_, CountRows(database, TableId::kArtifactData));
  return appender;
}

Status ArtifactAppender::Add(RunId run, std::string_view name, std::string_view kind,
                             std::string_view json) {
  const std::string content = std::string(json) + "\n";
  const auto bytes = static_cast<int64_t>(content.size());
  STRATA_RETURN_IF_ERROR(
      database_->Put(TableId::kArtifactData, ++parts_, {bytes, Packer().Pack(content)}));
  return database_->Put(
      TableId::kArtifact, ++artifacts_,
      {static_cast<int64_t>(run), name, kind, json, bytes, EncodeParts({&parts_, 1})});
}

Status ArtifactAppender::End() {
  STRATA_RETURN_IF_ERROR(PutCounter(*database_, TableId::kArtifact, artifacts_));
  return PutCounter(*database_, TableId::kArtifactData, parts_);
}

}  // namespace strata
