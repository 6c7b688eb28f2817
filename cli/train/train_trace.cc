#include "cli/train/train_trace.h"

#include <utility>

#include <fmt/format.h>

#include "cli/core/command.h"

namespace strata::cli {

Status ContinueWithoutTrace(Recording& recording, Status recorded) {
  if (recorded || recorded.error().code() != ErrorCode::kIo) return recorded;
  if (recording.trace() == nullptr) return Ok();
  Warn(fmt::format("{}; the trace ends incomplete, the training continues without it",
                   recorded.error().message()));
  recording.GiveUp();
  return Ok();
}

template <class Fn>
Status RecordPasses::Try(Fn record) {
  if (recording_.trace() == nullptr) return Ok();
  return ContinueWithoutTrace(recording_, record(recording_.watcher()));
}

Status RecordPasses::BeforePipeline(std::string_view pipeline, const Module& module) {
  return Try(
      [&](PassInstrumentation& watcher) { return watcher.BeforePipeline(pipeline, module); });
}

Status RecordPasses::AfterPass(const PassRun& run, const Module& module) {
  return Try([&](PassInstrumentation& watcher) { return watcher.AfterPass(run, module); });
}

Status RecordPasses::AfterPassFailed(const PassRun& run, const Module& module) {
  return Try([&](PassInstrumentation& watcher) { return watcher.AfterPassFailed(run, module); });
}

Status RecordPasses::AfterPipeline(const Module& module) {
  return Try([&](PassInstrumentation& watcher) { return watcher.AfterPipeline(module); });
}

}  // namespace strata::cli
