#pragma once
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "store/database/database.h"
#include "store/trace.h"

namespace strata {

/// Adds small artifacts to a trace that no TraceWriter writes to any more, inside a transaction of
/// the caller.
class ArtifactAppender {
 public:
  static Result<ArtifactAppender> Begin(Database& database);

  /// An artifact whose content is a JSON object that is also its attributes.
  Status Add(RunId run, std::string_view name, std::string_view kind, std::string_view json);

  /// Stores how many rows there are now.
  Status End();

 private:
  explicit ArtifactAppender(Database& database) : database_(&database) {}

  Database* database_;
  int64_t artifacts_ = 0, parts_ = 0;
};

}  // namespace strata
