#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/turns.h"
#include "bench/worker.h"
#include "runtime/train/trainer.h"

namespace strata::cli {

/// PyTorch with the model, the initial values and the tokens of a training.
struct PeerRequest {
  std::string name;                       ///< what the script calls it; unique in a folder
  std::string script = "train_peers.py";  ///< in bench/peers/
  int threads = 1;                        ///< inside operators
  /// Activation checkpointing of layers, "full" or "op"; "": none.
  std::string checkpoint = {};
  /// Compiled with this share of memory for activations: 0 saves inputs only, 1 is fastest.
  std::optional<double> memory_budget = {};
};

/// The interpreter that `./dev setup bench` made; "", with a warning: there is none.
std::string FindPeerPython();

/// Writes what a peer reads to `folder`, which outlives it. Returns its command, of a Worker.
/// REQUIRES: `trainer` is not compiled.
Result<std::vector<std::string>> PeerCommand(const std::string& python, const PeerRequest& request,
                                             const Trainer& trainer, const std::string& folder);

/// A peer that trains.
class PyTorchPeer final : public Contender {
 public:
  PyTorchPeer(const std::string& peer, std::unique_ptr<Worker> process)
      : Contender("PyTorch " + peer), process_(std::move(process)) {}
  Result<FirstSteps> Begin() override;
  Result<std::vector<StepTime>> Run(int64_t steps) override;
  void End() override { process_.reset(); }

 private:
  std::unique_ptr<Worker> process_;
};

/// Starts the process of a peer, which logs to `folder`. Errors and requirements: as above.
Result<std::unique_ptr<PyTorchPeer>> StartPeer(const std::string& python,
                                               const PeerRequest& request, const Trainer& trainer,
                                               const std::string& folder);

}  // namespace strata::cli
