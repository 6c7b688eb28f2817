#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/interrupt.h"
#include "base/result.h"
#include "cli/train/train_outputs.h"
#include "passes/core/pass.h"
#include "refs/recording/recording.h"
#include "runtime/control/control_socket.h"
#include "runtime/control/debugger.h"
#include "runtime/train/trainer.h"

namespace strata::cli {

/// The socket of `strata train --control`, and what its clients command. Without a socket steps are
/// the trainer's, and nothing but the trainer ends it.
class TrainControl {
 public:
  TrainControl() = default;
  /// Answers the clients that wait for a stop: the training has ended.
  ~TrainControl();
  TrainControl(const TrainControl&) = delete;
  TrainControl& operator=(const TrainControl&) = delete;

  /// `waits`: the training stops before its first pass until a client continues. REQUIRES: `stop`
  /// and `outputs` outlive this. Errors: those of ControlSocket::Open.
  Status Open(const std::string& path, bool waits, const StopRequest& stop, TrainOutputs& outputs);

  /// Null without a socket.
  PassInstrumentation* watcher() { return debugger_ ? &*debugger_ : nullptr; }
  /// None: a client ends the training here.
  Result<std::optional<StepReport>> Step(Trainer& trainer);
  /// A client ended the training.
  bool ends() const { return debugger_ && debugger_->ends(); }
  void AfterCheckpoint(const Trainer& trainer);
  /// Warns of what clients changed since the last call, and records it as events of the run.
  Status Record(Recording& recording);

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<Debugger> debugger_;
  std::unique_ptr<ControlSocket> socket_;  // after the debugger, which its threads call
};

}  // namespace strata::cli
