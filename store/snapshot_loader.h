#pragma once
#include <memory>

#include "base/result.h"
#include "ir/module.h"
#include "store/database/database.h"
#include "store/database/pool.h"
#include "store/trace.h"

namespace strata {

/// Makes graphs from the snapshots of one file. Remembers what it read for the next one, which has
/// most of it too.
class SnapshotLoader {
 public:
  /// REQUIRES: `database` outlives this.
  explicit SnapshotLoader(Database& database);

  /// REQUIRES: a read transaction is open. Errors: there is no such snapshot, its records are
  /// damaged, or its graph has another fingerprint than it was stored with.
  Result<std::unique_ptr<Module>> Load(SnapshotId id);

 private:
  Status Rename(Module& module, const Cursor& snapshot);

  Database& database_;
  PoolReader strings_, types_, nodes_, chunks_;
};

/// 16 bytes, as the trace stores them.
std::string FingerprintBytes(Fingerprint fingerprint);
/// REQUIRES: 16 bytes; others give zero.
Fingerprint FingerprintFromBytes(std::string_view bytes);

}  // namespace strata
