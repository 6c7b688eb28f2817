#include "refs/recording.h"

#include <fmt/format.h>

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

Status Recording::End(bool succeeded) {
  if (!trace_) return Ok();
  Status ended = trace_->EndRun(run(), succeeded ? RunStatus::kFinished : RunStatus::kFailed);
  if (ended) ended = trace_->Finish();
  return ended;
}

}  // namespace strata
