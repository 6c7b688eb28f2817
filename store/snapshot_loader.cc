#include "store/snapshot_loader.h"

#include "store/database/bytes.h"
#include "store/snapshot_decoder.h"

namespace strata {
namespace {

// Of each pool; a snapshot of 100,000 nodes takes about 10 MB.
constexpr size_t kMaxCachedBytes = size_t{64} << 20;

constexpr size_t kFingerprintColumn = 1, kEverythingColumn = 2, kRootColumn = 5;

/// The root in a row of the table of snapshots.
class RootRow final : public RecordSource {
 public:
  explicit RootRow(const Cursor& row) : row_(row) {}
  Result<std::string_view> Get(uint32_t) override { return row_.Bytes(kRootColumn); }
  Error Damaged(uint32_t, std::string_view what) const override { return row_.Damaged(what); }

 private:
  const Cursor& row_;
};

}  // namespace

SnapshotLoader::SnapshotLoader(Database& database)
    : database_(database),
      strings_(database, TableId::kStringPool),
      types_(database, TableId::kTypePool),
      nodes_(database, TableId::kNodePool),
      chunks_(database, TableId::kChunkPool) {}

Result<std::unique_ptr<Module>> SnapshotLoader::Load(SnapshotId id) {
  for (PoolReader* pool : {&strings_, &types_, &nodes_, &chunks_})
    pool->Trim(kMaxCachedBytes);
  STRATA_TRY(Cursor row, database_.Scan(TableId::kSnapshot, static_cast<int64_t>(id)));
  STRATA_TRY(const bool found, row.Next());
  if (!found || row.id() != static_cast<int64_t>(id)) {
    return Error(ErrorCode::kNotFound, "no such snapshot: {}: {}: 'strata ls' lists what it has",
                 database_.path(), static_cast<int64_t>(id));
  }
  RootRow roots(row);
  STRATA_TRY(
      std::unique_ptr<Module> module,
      DecodeSnapshot(static_cast<uint32_t>(row.id()), {roots, strings_, types_, nodes_, chunks_}));
  const Graph& graph = module->graph(GraphId{0});
  if (FingerprintOf(graph, FingerprintScope::kEverything) !=
          FingerprintFromBytes(row.Bytes(kEverythingColumn)) ||
      FingerprintOf(graph) != FingerprintFromBytes(row.Bytes(kFingerprintColumn))) {
    return row.Damaged("its graph has another fingerprint than it was stored with");
  }
  if (graph.is_foreign()) STRATA_RETURN_IF_ERROR(Rename(*module, row));
  return module;
}

/// The text of a foreign graph has many names; its bytes are those of the first.
Status SnapshotLoader::Rename(Module& module, const Cursor& snapshot) {
  STRATA_TRY(Cursor row, database_.Scan(TableId::kGraph, snapshot.Integer(0)));
  STRATA_TRY(const bool found, row.Next());
  if (!found || row.id() != snapshot.Integer(0))
    return snapshot.Damaged("its graph does not exist");
  module.RenameGraph(GraphId{0}, row.Bytes(1));
  return Ok();
}

std::string FingerprintBytes(Fingerprint fingerprint) {
  std::string bytes;
  ByteWriter out(bytes);
  out.Fixed64(fingerprint.hi);
  out.Fixed64(fingerprint.lo);
  return bytes;
}

Fingerprint FingerprintFromBytes(std::string_view bytes) {
  ByteReader in(bytes);
  Fingerprint fingerprint;
  fingerprint.hi = in.Fixed64();
  fingerprint.lo = in.Fixed64();
  return in.AtEnd() ? fingerprint : Fingerprint{};
}

}  // namespace strata
