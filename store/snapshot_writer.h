#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "store/database/pack.h"
#include "store/snapshot_encoder.h"
#include "store/trace.h"
#include "store/trace_rows.h"

namespace strata {

/// Encodes graphs and stores them as snapshots of a trace.
class SnapshotWriter {
 public:
  /// A snapshot that is encoded and not stored. `info` has the id that it will get.
  struct NewSnapshot {
    SnapshotInfo info;
    EncodedSnapshot encoded;
    uint64_t next_stable_id = 0;
  };

  /// Both outlive this.
  SnapshotWriter(TraceRows& rows, Packer& packer) : rows_(rows), packer_(packer) {}

  /// `shares_nodes`: the graph may have versions of nodes in common with other ones of the trace.
  /// Errors: those of EncodeSnapshot.
  Result<NewSnapshot> Encode(RunId run, std::string_view name, const Graph& graph,
                             std::string_view attributes, bool shares_nodes);
  /// The graph of a stored snapshot under another name. Errors: the trace cannot be read.
  Result<NewSnapshot> Copy(RunId run, std::string_view name, SnapshotId same);
  /// REQUIRES: in a transaction; snapshots are stored in the order in which they were encoded.
  Status Store(NewSnapshot& snapshot);

  /// What a pass changed between its snapshots. Without a snapshot before, all is inserted.
  /// REQUIRES: both are stored.
  ChangeCounts CountedChanges(const PassRecord& pass) const;

  /// Of a stored snapshot, without its attributes.
  const SnapshotInfo& info(SnapshotId id) const { return Stored(id).info; }
  /// Stable ids of stored graphs are below it.
  uint64_t next_stable_id() const { return next_stable_id_; }

 private:
  struct StoredSnapshot {
    SnapshotInfo info;
    EncodedSnapshot encoded;
  };
  const StoredSnapshot& Stored(SnapshotId id) const {
    return snapshots_[static_cast<size_t>(id) - 1];
  }
  SnapshotId NextId() const { return static_cast<SnapshotId>(snapshots_.size() + 1); }

  TraceRows& rows_;
  Packer& packer_;
  SnapshotPools pools_;
  std::vector<StoredSnapshot> snapshots_;
  uint64_t next_stable_id_ = 1;
};

}  // namespace strata
