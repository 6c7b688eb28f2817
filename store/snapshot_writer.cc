#include "store/snapshot_writer.h"

#include <string>
#include <utility>

#include "ir/fingerprint.h"
#include "ir/module.h"
#include "store/count_changes.h"
#include "store/snapshot_loader.h"

namespace strata {

Result<SnapshotWriter::NewSnapshot> SnapshotWriter::Encode(RunId run, std::string_view name,
                                                           const Graph& graph,
                                                           std::string_view attributes,
                                                           bool shares_nodes) {
  STRATA_RETURN_IF_ERROR(rows_.CheckUsable());
  NewSnapshot snapshot;
  pools_.shares_nodes = shares_nodes;
  STRATA_TRY(snapshot.encoded, EncodeSnapshot(graph, pools_));
  snapshot.info.id = NextId();
  snapshot.info.run = run;
  snapshot.info.graph = name;
  snapshot.info.fingerprint = FingerprintOf(graph);
  snapshot.info.everything = FingerprintOf(graph, FingerprintScope::kEverything);
  snapshot.info.nodes = snapshot.encoded.printed_nodes;
  snapshot.info.attributes = attributes;
  snapshot.next_stable_id = graph.module().next_stable_id();
  return snapshot;
}

Result<SnapshotWriter::NewSnapshot> SnapshotWriter::Copy(RunId run, std::string_view name,
                                                         SnapshotId same) {
  STRATA_RETURN_IF_ERROR(rows_.CheckUsable());
  NewSnapshot copy;
  const StoredSnapshot& original = Stored(same);
  copy.info = original.info;
  copy.encoded = original.encoded;
  STRATA_TRY(Cursor row, rows_.database().Scan(TableId::kSnapshot, IntegerOf(same)));
  STRATA_TRY(const bool found, row.Next());
  STRATA_CHECK(found);
  copy.encoded.root = row.Bytes(5);
  copy.info.id = NextId();
  copy.info.run = run;
  copy.info.graph = name;
  return copy;
}

Status SnapshotWriter::Store(NewSnapshot& snapshot) {
  STRATA_RETURN_IF_ERROR(pools_.Flush(rows_.database(), packer_));
  const SnapshotInfo& info = snapshot.info;
  STRATA_TRY(const int64_t graph, rows_.GraphRow(info.run, info.graph));
  STRATA_RETURN_IF_ERROR(rows_.database().Put(
      TableId::kSnapshot, rows_.NewRow(TableId::kSnapshot),
      {graph, FingerprintBytes(info.fingerprint), FingerprintBytes(info.everything), info.nodes,
       info.attributes, snapshot.encoded.root}));
  if (snapshot.next_stable_id > next_stable_id_) {
    next_stable_id_ = snapshot.next_stable_id;
    STRATA_RETURN_IF_ERROR(rows_.database().Put(
        TableId::kCounter, NextStableIdCounter(kSchemaVersion),
        {std::string_view("next_stable_id"), static_cast<int64_t>(next_stable_id_)}));
  }
  // What is kept of thousands of snapshots is small.
  if (!pools_.shares_nodes) {
    pools_.ForgetNodes();
    snapshot.encoded.chunks = {};
  }
  snapshot.encoded.root = {};
  snapshot.info.attributes = {};
  snapshots_.push_back({std::move(snapshot.info), std::move(snapshot.encoded)});
  return Ok();
}

ChangeCounts SnapshotWriter::CountedChanges(const PassRecord& pass) const {
  if (pass.before == pass.after || pass.after == SnapshotId::kNone) return {};
  static const EncodedSnapshot kNothing;
  const EncodedSnapshot& before =
      pass.before == SnapshotId::kNone ? kNothing : Stored(pass.before).encoded;
  return CountChanges(before, Stored(pass.after).encoded, pools_);
}

}  // namespace strata
