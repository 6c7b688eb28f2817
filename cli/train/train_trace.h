#pragma once
#include <string_view>

#include "base/result.h"
#include "passes/core/pass.h"
#include "refs/recording/recording.h"

namespace strata::cli {

/// What became of an attempt to record: a trace that cannot be written to (disk full) is closed as
/// incomplete, with a warning, and the training continues without it. Returns other errors.
Status ContinueWithoutTrace(Recording& recording, Status recorded);

/// Records the passes of a training, until the trace cannot be written to. REQUIRES:
/// recording.trace().
class RecordPasses final : public PassInstrumentation {
 public:
  /// `recording` outlives this.
  explicit RecordPasses(Recording& recording) : recording_(recording) {}

  Status BeforePipeline(std::string_view pipeline, const Module& module) override;
  Status AfterPass(const PassRun& run, const Module& module) override;
  Status AfterPassFailed(const PassRun& run, const Module& module) override;
  Status AfterPipeline(const Module& module) override;

 private:
  template <class Fn>
  Status Try(Fn record);

  Recording& recording_;
};

}  // namespace strata::cli
