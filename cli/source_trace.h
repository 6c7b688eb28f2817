#pragma once
#include <string>

#include "base/interrupt.h"
#include "base/result.h"

namespace strata::cli {

/// The trace of a source that a command reads: the file itself when it is one; else a log, a folder
/// of logs or an FX text, imported into a trace that is removed with this object.
class SourceTrace {
 public:
  /// `command` is what the import's runs keep; warnings of the import go to stderr.
  static Result<SourceTrace> Open(const std::string& file, const std::string& command);

  const std::string& path() const { return path_; }
  bool is_imported() const { return !folder_.empty(); }

 private:
  SourceTrace() = default;

  std::string path_;
  TemporaryPath folder_;  // of our own; empty: none
};

}  // namespace strata::cli
