#include <filesystem>

#include <doctest/doctest.h>

#include "ir/text/native_text.h"
#include "store/births.h"
#include "store/check.h"
#include "store/database/database.h"
#include "store/database/pack.h"
#include "store/database/pool.h"
#include "store/trace_writer.h"
#include "tests/unit/store/support.h"

namespace strata::store_test {
namespace {

std::string Hex(std::string_view bytes) {
  std::string hex;
  for (char c : bytes)
    hex += fmt::format("{}{:02x}", hex.empty() ? "" : " ", static_cast<uint8_t>(c));
  return hex;
}

/// The records of a pool in hex; strings unchanged.
std::vector<std::string> RecordsOf(Database& database, TableId table) {
  std::vector<std::string> records;
  PoolReader pool(database, table);
  for (uint32_t id = 1;; ++id) {
    const auto record = pool.Get(id);
    if (!record) return records;
    records.push_back(table == TableId::kStringPool ? std::string(*record) : Hex(*record));
  }
}

// The bytes below were assembled by hand from docs/trace_format.md. A change here requires a new
// schema version.
TEST_CASE("a snapshot has these bytes") {
  const TempDir dir;
  const auto module = OrDie(ParseText(R"(graph g
  x = placeholder : f32[2][1]cpu #1
  a = aten.relu.default(x) : f32[2][1]cpu {forward module=layers.0 seq=3} #2
  output([a]) #3
)"));
  const auto writer = OrDie(TraceWriter::Create(dir / "t.strata"));
  OrDie(writer->AddSnapshot(OrDie(writer->BeginRun({})), "step", module->graph(GraphId{0})));
  const auto database = OrDie(Database::OpenExisting(dir / "t.strata"));
  CHECK_EQ(
      RecordsOf(*database, TableId::kStringPool),
      std::vector<std::string>{"g", "cpu", "x", "aten.relu.default", "layers.0", "a", "output"});
  // tensor, f32, has strides; "cpu", no wrapper; no offset; one size 2; one stride 1; the rest.
  CHECK_EQ(RecordsOf(*database, TableId::kTypePool),
           std::vector<std::string>{"00 0a 01 02 00 00 01 01 04 01 01 02 00 00"});
  CHECK_EQ(RecordsOf(*database, TableId::kNodePool),
           std::vector<std::string>{
               // id 1, placeholder, no phase, operator, module, arguments; a result of type 1
               // without an alias; "x", no element name, no location, seq -1, line -1, stream,
               // attributes
               "01 00 00 00 00 00 00 01 01 00 03 00 00 01 01 00 00",
               // id 2, call, forward, relu, layers.0; operand: first result of id 2 - 1
               "02 02 01 04 05 01 41 02 00 01 01 00 06 00 00 06 01 00 00",
               // id 3, output; a list of one operand; no results
               "03 05 00 00 00 01 0b 01 41 02 00 00 07 00 01 01 00 00",
           });
  CHECK_EQ(RecordsOf(*database, TableId::kChunkPool), std::vector<std::string>{"02 02 02"});
  Cursor row = OrDie(database->Scan(TableId::kSnapshot));
  REQUIRE(OrDie(row.Next()));
  // One graph "g" without flags, 3 nodes, in chunk 1; no symbols.
  CHECK_EQ(Hex(row.Bytes(5)), "01 01 00 03 01 02 00");
}

TEST_CASE("numbers of kinds, types and statuses match the format") {
  constexpr std::string_view kDTypes[] = {
      "u8",    "i8",     "i16",      "i32",        "i64",        "u16",       "u32",
      "u64",   "f16",    "f32",      "f64",        "bf16",       "c32",       "c64",
      "c128",  "bc32",   "b8",       "b1x8",       "b2x4",       "b4x2",      "b8x1",
      "b16x1", "f8e5m2", "f8e4m3fn", "f8e5m2fnuz", "f8e4m3fnuz", "f8e8m0fnu", "f4e2m1fnx2"};
  int number = 0;
  for (std::string_view name : kDTypes) {
    CAPTURE(name);
    CHECK_EQ(static_cast<int>(*DTypeFromShortName(name)), ++number);
  }
  CHECK_EQ(static_cast<int>(RunKind::kImport), 1);
  CHECK_EQ(static_cast<int>(RunKind::kOpt), 2);
  CHECK_EQ(static_cast<int>(RunKind::kTrain), 3);
  CHECK_EQ(static_cast<int>(RunStatus::kRunning), 1);
  CHECK_EQ(static_cast<int>(RunStatus::kFinished), 2);
  CHECK_EQ(static_cast<int>(RunStatus::kFailed), 3);
  CHECK_EQ(static_cast<int>(PassOutcome::kOk), 1);
  CHECK_EQ(static_cast<int>(PassOutcome::kUnchanged), 2);
  CHECK_EQ(static_cast<int>(PassOutcome::kFailed), 3);
}

TEST_CASE("provenance records have these bytes") {
  const Provenance births[] = {{StableId{10}, Origin::kCloned, {StableId{7}}},
                               {StableId{9}, Origin::kReplaced, {}}};
  // Two; 10 from 0, cloned, of one: 10 - 7; 9 from 10, replaced, of none.
  CHECK_EQ(Hex(EncodeBirths(births)), "02 14 02 01 06 01 03 00");
  CHECK_FALSE(DecodeBirths("\x02").has_value());
  CHECK_FALSE(DecodeBirths(std::string_view("\0\0", 2)).has_value());
}

TEST_CASE("packed bytes state their compression") {
  Packer packer;
  CHECK_EQ(Hex(packer.Pack("ab")), "00 61 62");
  const std::string long_text(1000, 'x');
  const std::string packed = packer.Pack(long_text);
  CHECK_LT(packed.size(), 50);
  CHECK_EQ(Hex(packed.substr(0, 5)), "01 28 b5 2f fd");  // zstd's magic number, RFC 8878
  CHECK_EQ(*Unpack(packed, 1000), long_text);
  CHECK_FALSE(Unpack(packed, 999).has_value());
  CHECK_FALSE(Unpack("", 10).has_value());
  CHECK_FALSE(Unpack("\x02xx", 10).has_value());
  CHECK_FALSE(Unpack(packed.substr(0, 12), 1000).has_value());
}

TEST_CASE("every table is strict, and its rows are numbered and summed") {
  const TempDir dir;
  const auto writer = OrDie(TraceWriter::Create(dir / "t.strata"));
  const auto database = OrDie(Database::OpenExisting(dir / "t.strata"));
  const auto tables =
      OrDie(database->QueryTexts("SELECT sql FROM sqlite_schema WHERE type = 'table'"));
  CHECK_EQ(tables.size(), kNumTables);
  for (const std::string& sql : tables) {
    CHECK(sql.find("(id INTEGER PRIMARY KEY, ") != sql.npos);
    CHECK(sql.ends_with(", sum INTEGER NOT NULL) STRICT"));
  }
  CHECK_EQ(OrDie(database->QueryInteger("PRAGMA application_id")), 0x53545241);
  CHECK_EQ(OrDie(database->QueryInteger("PRAGMA user_version")), 2);
}

// Fingerprints are a part of the format: they are compared when a graph is loaded.
TEST_CASE("traces of earlier schema versions are read unchanged") {
  for (int version = 1; version <= kSchemaVersion; ++version) {
    const std::string name = fmt::format("tests/data/store/schema_{}", version);
    REQUIRE(std::filesystem::exists(name + ".strata"));
    CHECK_EQ(OrDie(Dump(name + ".strata", false)), Slurp(name + ".txt"));
    CHECK(OrDie(CheckTrace(name + ".strata")).empty());
  }
}

// A tool, run by its name: it writes what the test above reads.
TEST_CASE("write tests/data/store for a new schema version" * doctest::skip()) {
  const std::string name = fmt::format("tests/data/store/schema_{}", kSchemaVersion);
  WriteSmallTrace(name + ".strata", 30);
  Spill(name + ".txt", OrDie(Dump(name + ".strata", false)));
}

}  // namespace
}  // namespace strata::store_test
