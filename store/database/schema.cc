#include "store/database/schema.h"

#include <fmt/format.h>

namespace strata {
namespace {

using enum CellType;

constexpr Column kCounterColumns[] = {{"name", kText}, {"value", kInteger}};

// Records are numbered through the blocks; `data` is packed (store/database/pack.h).
constexpr Column kPoolColumns[] = {{"count", kInteger}, {"data", kBlob}};

constexpr Column kRunColumns[] = {
    {"kind", kInteger}, {"rank", kInteger},  {"world", kInteger}, {"source", kText},
    {"command", kText}, {"pipeline", kText}, {"config", kText},   {"status", kInteger},
};
constexpr Column kGraphColumns[] = {{"run", kReference, "run"}, {"name", kText}};
constexpr Column kSnapshotColumns[] = {
    {"graph", kReference, "graph"}, {"fingerprint", kBlob},
    {"everything", kBlob},          {"nodes", kInteger},
    {"attributes", kText},          {"root", kBlob},
};
constexpr Column kPassColumns[] = {
    {"run", kReference, "run"},
    {"position", kInteger},
    {"name", kText},
    {"options", kText},
    {"outcome", kInteger},
    {"wall_ns", kInteger},
    {"graph", kReference, "graph"},
    {"before", kReference, "snapshot"},
    {"after", kReference, "snapshot"},
    {"inserted", kInteger},
    {"deleted", kInteger},
    {"changed", kInteger},
    {"moved", kInteger},
    {"error", kText},
    {"reproduce", kText},
    {"births", kBlob},
};
constexpr Column kExecutedColumns[] = {
    {"graph", kReference, "graph"},
    {"first_step", kInteger},
    {"last_step", kInteger},
    {"fingerprint", kBlob},
};
constexpr Column kStepColumns[] = {
    {"run", kReference, "run"}, {"step", kInteger},    {"loss", kReal},
    {"grad_norm", kReal},       {"wall_ns", kInteger},
};
constexpr Column kArtifactColumns[] = {
    {"run", kReference, "run"}, {"name", kText},     {"kind", kText},
    {"attributes", kText},      {"bytes", kInteger}, {"data", kBlob},
};
// `data` of an artifact lists rows of this table. Before version 2 it was the packed content.
constexpr Column kArtifactDataColumns[] = {{"bytes", kInteger}, {"data", kBlob}};
constexpr Column kEventColumns[] = {
    {"run", kReference, "run"}, {"kind", kText},    {"name", kText},       {"start_ns", kInteger},
    {"duration_ns", kInteger},  {"node", kInteger}, {"attributes", kText},
};

constexpr std::array<Table, kNumTables> kTables = {{
    {"counter", kCounterColumns},
    {"string_pool", kPoolColumns},
    {"type_pool", kPoolColumns},
    {"node_pool", kPoolColumns},
    {"chunk_pool", kPoolColumns},
    {"run", kRunColumns},
    {"graph", kGraphColumns},
    {"snapshot", kSnapshotColumns},
    {"pass", kPassColumns},
    {"executed", kExecutedColumns},
    {"step", kStepColumns},
    {"artifact", kArtifactColumns},
    {"event", kEventColumns},
    {"artifact_data", kArtifactDataColumns},
}};

std::string_view SqlType(CellType type) {
  switch (type) {
    case kInteger:
      return "INTEGER NOT NULL";
    case kReference:
      return "INTEGER";
    case kReal:
      return "REAL";
    case kText:
      return "TEXT NOT NULL";
    case kBlob:
      return "BLOB NOT NULL";
  }
  return "";
}

}  // namespace

const Table& TableOf(TableId id) {
  return kTables[static_cast<size_t>(id)];
}

std::string ColumnList(const Table& table) {
  std::string list = "id";
  for (const Column& column : table.columns)
    list += fmt::format(", {}", column.name);
  return list + ", sum";
}

std::string SchemaSql() {
  std::string sql = fmt::format("PRAGMA application_id = {};\nPRAGMA user_version = {};\n",
                                kApplicationId, kSchemaVersion);
  for (const Table& table : kTables) {
    sql += fmt::format("CREATE TABLE {}(id INTEGER PRIMARY KEY", table.name);
    for (const Column& column : table.columns) {
      sql += fmt::format(", {} {}", column.name, SqlType(column.type));
      if (column.references != nullptr) sql += fmt::format(" REFERENCES {}", column.references);
    }
    sql += ", sum INTEGER NOT NULL) STRICT;\n";
  }
  return sql;
}

}  // namespace strata
