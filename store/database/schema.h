#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace strata {

/// The first bytes of a trace identify SQLite's format and these two numbers.
inline constexpr int32_t kApplicationId = 0x53545241;  // "STRA"
/// Raised when an older reader would misread the file; then older files are still read.
inline constexpr int32_t kSchemaVersion = 2;

/// In the column `rank` of a run whose graphs are those of all ranks.
inline constexpr int64_t kAllRanks = -1;

/// Tables of a trace. Every table has a column `id`, dense from 1 (pools: the id of the first
/// record of a block), and a last column `sum`, the XXH3-64 of the other cells of the row.
enum class TableId : uint8_t {
  kCounter,
  kStringPool,
  kTypePool,
  kNodePool,
  kChunkPool,
  kRun,
  kGraph,
  kSnapshot,
  kPass,
  kExecuted,
  kStep,
  kArtifact,
  kEvent,
  kArtifactData,
};
inline constexpr size_t kNumTables = 14;
/// Tables of a file of that version: the first ones of the list.
constexpr size_t NumTables(int64_t version) {
  return version < 2 ? 13 : kNumTables;
}

enum class CellType : uint8_t {
  kInteger,
  kReference,  ///< the id of a row of `references`; 0 is stored as NULL
  kReal,       ///< NaN is stored as NULL
  kText,
  kBlob,
};

struct Column {
  const char* name;
  CellType type;
  const char* references = nullptr;
};

struct Table {
  const char* name;
  std::span<const Column> columns;  ///< between `id` and `sum`
};

const Table& TableOf(TableId id);

/// Rows of kCounter, in this order from id 1: how many rows (pools: records) each table has, so
/// that lost rows are noticed, then the next stable id.
constexpr int64_t NextStableIdCounter(int64_t version) {
  return static_cast<int64_t>(NumTables(version)) + 1;
}
inline int64_t CounterOf(TableId table) {
  return static_cast<int64_t>(table) + 1;
}

/// Statements that make an empty trace.
std::string SchemaSql();
/// `id, <columns>, sum`.
std::string ColumnList(const Table& table);

}  // namespace strata
