// A trace file from any bytes, and a snapshot from damaged records: an error or a graph, never a
// crash. The second way gets past the checksums, which damaged files never do.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "ir/text/native_text.h"
#include "ir/verify.h"
#include "store/check.h"
#include "store/database/bytes.h"
#include "store/database/database.h"
#include "store/database/pool.h"
#include "store/snapshot_decoder.h"
#include "tests/unit/store/support.h"

namespace {

using namespace strata;
using namespace strata::store_test;

std::string TemporaryPath() {
  return (std::filesystem::temp_directory_path() / fmt::format("fuzz_store_{}", ::getpid()))
      .string();
}

class Records final : public RecordSource {
 public:
  Result<std::string_view> Get(uint32_t id) override {
    if (id == 0 || id > records.size()) return Damaged(id, "there is no such record");
    return std::string_view(records[id - 1]);
  }
  Error Damaged(uint32_t id, std::string_view what) const override {
    return Error(ErrorCode::kCorrupt, "record {}: {}", id, what);
  }

  std::vector<std::string> records;
};

/// Root, strings, types, nodes and chunks of one snapshot.
using Snapshot = std::array<Records, 5>;

Snapshot ReadSnapshot() {
  const std::string path = TemporaryPath();
  const auto module = MakeModule(1, 60);
  const auto writer = OrDie(TraceWriter::Create(path));
  OrDie(writer->AddSnapshot(OrDie(writer->BeginRun({})), "step", module->graph(GraphId{0})));
  OrDie(writer->Finish());
  const auto database = OrDie(Database::OpenExisting(path));
  Snapshot snapshot;
  Cursor row = OrDie(database->Scan(TableId::kSnapshot));
  OrDie(row.Next());
  snapshot[0].records.push_back(row.String(5));
  constexpr TableId kPools[] = {TableId::kStringPool, TableId::kTypePool, TableId::kNodePool,
                                TableId::kChunkPool};
  for (size_t i = 0; i < 4; ++i) {
    PoolReader pool(*database, kPools[i]);
    for (uint32_t id = 1;; ++id) {
      const auto record = pool.Get(id);
      if (!record) break;
      snapshot[i + 1].records.emplace_back(*record);
    }
  }
  std::filesystem::remove(path);
  return snapshot;
}

/// `bytes` are edits: which record of which kind, where, and what to write there, or to cut it off.
void Damage(std::string_view bytes, Snapshot& snapshot) {
  ByteReader in(bytes);
  while (in.left() > 0) {
    std::vector<std::string>& records = snapshot[in.Byte() % snapshot.size()].records;
    std::string& record = records[in.Varint() % records.size()];
    const size_t place = record.empty() ? 0 : in.Varint() % record.size();
    if (in.Byte() % 8 == 0) {
      record.resize(place);
    } else {
      record.replace(place, 1, in.Sized());
    }
  }
}

void LoadDamaged(std::string_view edits) {
  static const Snapshot original = ReadSnapshot();
  Snapshot snapshot = original;
  Damage(edits, snapshot);
  const auto module =
      DecodeSnapshot(1, {snapshot[0], snapshot[1], snapshot[2], snapshot[3], snapshot[4]});
  if (!module) return;
  for (size_t i = 0; i < (*module)->num_graphs(); ++i) {
    const Graph& graph = (*module)->graph(GraphId{static_cast<int32_t>(i)});
    (void)FingerprintOf(graph, FingerprintScope::kEverything);
    (void)PrintText(graph);
    (void)Verify(graph);
  }
}

void OpenFile(const std::string& bytes) {
  const std::string path = TemporaryPath();
  Spill(path, bytes);
  (void)Dump(path);
  (void)CheckTrace(path);
  std::filesystem::remove(path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with("SQLite format 3")) {
    OpenFile(std::string(bytes));
  } else {
    LoadDamaged(bytes);
  }
  return 0;
}
