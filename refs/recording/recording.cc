#include "refs/recording/recording.h"

#include <fmt/format.h>

#include "store/run_end.h"

namespace strata {

Result<Recording> Recording::Begin(const std::optional<std::string>& path, const RunInfo& run) {
  Recording recording;
  if (!path) return recording;
  STRATA_TRY(recording.trace_, TraceWriter::Create(*path));
  STRATA_TRY(const RunId id, recording.trace_->BeginRun(run));
  recording.recorder_ = std::make_unique<TraceRecorder>(*recording.trace_, id);
  recording.watcher_ = std::make_unique<RecordSnapshots>(*recording.recorder_);
  return recording;
}

Status Recording::AddEnvironment(const Environment& environment) {
  return trace_ ? strata::AddEnvironment(*trace_, run(), environment) : Ok();
}

Status Recording::AddProof(const PassRun& pass, PassProof proof) {
  if (!trace_) return Ok();
  proof.pass = recorder_->IndexOf(pass);
  return strata::AddProof(*trace_, run(), proof);
}

std::string Recording::RunRef() const {
  if (!trace_) return {};
  return fmt::format("{}#run={}", trace_->path(), static_cast<int64_t>(run()));
}

void Recording::GiveUp() {
  trace_->EndAfterError(run());
  trace_.reset();
}

Status Recording::End(const Status& outcome, bool was_interrupted) {
  if (!trace_) return Ok();
  if (!outcome) STRATA_RETURN_IF_ERROR(AddRunEnd(*trace_, run(), outcome.error().message()));
  const RunStatus status = outcome           ? RunStatus::kFinished
                           : was_interrupted ? RunStatus::kInterrupted
                                             : RunStatus::kFailed;
  STRATA_RETURN_IF_ERROR(trace_->EndRun(run(), status));
  return trace_->Finish();
}

}  // namespace strata
