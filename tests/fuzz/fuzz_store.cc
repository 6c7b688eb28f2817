// Bytes as a trace file, and bytes as the records of a snapshot: an error or a graph, never a
// crash. The second way gets past the checksums, which random bytes never do.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "ir/native_text.h"
#include "ir/verify.h"
#include "store/bytes.h"
#include "store/snapshot_decoder.h"
#include "store/trace.h"

namespace {

using namespace strata;

/// Records that the input holds, one after the other.
class Records final : public RecordSource {
 public:
  explicit Records(ByteReader& in) {
    const size_t count = in.Byte();
    for (size_t i = 0; i < count && in.ok(); ++i)
      records_.push_back(in.Sized());
  }
  Result<std::string_view> Get(uint32_t id) override {
    if (id == 0 || id > records_.size()) return Damaged(id, "there is no such record");
    return records_[id - 1];
  }
  Error Damaged(uint32_t id, std::string_view what) const override {
    return Error(ErrorCode::kCorrupt, "record {}: {}", id, what);
  }

 private:
  std::vector<std::string_view> records_;
};

void DecodeRecords(std::string_view bytes) {
  ByteReader in(bytes);
  Records roots(in), strings(in), types(in), nodes(in), chunks(in);
  const auto module = DecodeSnapshot(1, {roots, strings, types, nodes, chunks});
  if (!module) return;
  for (size_t i = 0; i < (*module)->num_graphs(); ++i) {
    const Graph& graph = (*module)->graph(GraphId{static_cast<int32_t>(i)});
    (void)FingerprintOf(graph, FingerprintScope::kEverything);
    (void)PrintText(graph);
    (void)Verify(graph);
  }
}

void OpenFile(std::string_view bytes) {
  static const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("fuzz_store_{}.strata", ::getpid()))
          .string();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) std::abort();
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
  if (const auto trace = TraceReader::Open(path)) {
    for (size_t i = 1; i <= (*trace)->num_snapshots(); ++i)
      (void)(*trace)->LoadSnapshot(static_cast<SnapshotId>(i));
  }
  (void)CheckTrace(path);
  std::filesystem::remove(path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with("SQLite format 3")) {
    OpenFile(bytes);
  } else {
    DecodeRecords(bytes);
  }
  return 0;
}
