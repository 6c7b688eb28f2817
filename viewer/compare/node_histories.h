#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "diff/history/blame.h"
#include "diff/history/history.h"
#include "viewer/compare/document.h"

namespace strata::viewer {

/// What happened to nodes over all passes of their graphs. The diffs of a graph are made when they
/// are first needed, and kept. Usable from several threads.
class NodeHistories {
 public:
  /// Records are read by a reader of its own; graphs are those of the document.
  explicit NodeHistories(std::shared_ptr<Document> document) : document_(std::move(document)) {}

  /// Errors: the trace cannot be read; the subject is not of one of its runs; no such node.
  Result<Blame> Of(const Subject& subject, bool before, const std::string& node);

 private:
  struct Run {
    std::unique_ptr<History> history;   // Blamers refer to it
    std::map<int32_t, Blamer> blamers;  // by graph
  };
  Result<Run*> Load(RunId run);

  const std::shared_ptr<Document> document_;
  std::mutex mutex_;
  std::shared_ptr<TraceReader> reader_;
  std::map<RunId, Run> runs_;
};

}  // namespace strata::viewer
