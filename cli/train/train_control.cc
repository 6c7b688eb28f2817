#include "cli/train/train_control.h"

#include <utility>

#include <fmt/format.h>

#include "cli/core/command.h"
#include "store/trace_writer.h"

namespace strata::cli {

TrainControl::~TrainControl() {
  if (debugger_) debugger_->Finish();
}

Status TrainControl::Open(const std::string& path, bool waits, const StopRequest& stop,
                          TrainOutputs& outputs) {
  debugger_.emplace(
      Debugger::Options{.starts_stopped = waits,
                        .interrupted = [&stop] { return stop.came(); },
                        .save = [&outputs](Trainer& trainer) { return outputs.SaveNow(trainer); }});
  const auto execute = [this](std::string_view command, ControlSocket::Answer answer) {
    debugger_->Execute(command, [answer = std::move(answer)](const ControlAnswer& given) {
      answer(given.ok, given.text, given.json);
    });
  };
  const auto detach = [this] { debugger_->Detach(); };
  STRATA_TRY(socket_, ControlSocket::Open(path, {.execute = execute, .last_client_left = detach}));
  return Ok();
}

Result<std::optional<StepReport>> TrainControl::Step(Trainer& trainer) {
  if (debugger_) return debugger_->Step(trainer);
  STRATA_TRY(StepReport report, trainer.Step());
  return std::optional(std::move(report));
}

void TrainControl::AfterCheckpoint(const Trainer& trainer) {
  if (debugger_) debugger_->SetOrigin(trainer);
}

Status TrainControl::Record(Recording& recording) {
  if (!debugger_) return Ok();
  for (const Debugger::RateChange& change : debugger_->TakeRateChanges()) {
    Warn(fmt::format("a client of --control set optimizer.lr: {} -> {} from step {} on",
                     change.before, change.after, change.step));
    if (recording.trace() == nullptr) continue;
    const EventRecord event{.kind = "control",
                            .name = "optimizer.lr",
                            .start_ns = (std::chrono::steady_clock::now() - start_).count(),
                            .attributes = fmt::format(R"({{"step":{},"before":{},"after":{}}})",
                                                      change.step, change.before, change.after)};
    STRATA_RETURN_IF_ERROR(recording.trace()->AddEvents(recording.run(), {&event, 1}));
  }
  return Ok();
}

}  // namespace strata::cli
