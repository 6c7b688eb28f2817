#pragma once
#include <functional>
#include <string>

#include "base/interrupt.h"
#include "base/result.h"
#include "refs/warnings.h"

namespace strata {

/// The trace of an input file: the file itself if it is a trace. A log, a folder of logs or an FX
/// text is imported into a temporary trace, which the destructor removes.
class SourceTrace {
 public:
  /// `command` is recorded with the imported runs; `warn` receives the import's warnings;
  /// `on_progress` is that of ImportOptions.
  static Result<SourceTrace> Open(const std::string& file, const std::string& command,
                                  const WarningSink& warn,
                                  std::function<Status(double share)> on_progress = {});

  const std::string& path() const { return path_; }
  bool is_imported() const { return !folder_.empty(); }

 private:
  SourceTrace() = default;

  std::string path_;
  TemporaryPath folder_;  // holds the temporary trace; empty: the file is a trace
};

}  // namespace strata
