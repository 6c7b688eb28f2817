#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/train/trainer.h"

namespace strata::cli {

/// Milliseconds that one step took.
struct StepTime {
  double cpu = 0;   ///< of the processor, all threads
  double wall = 0;  ///< on the clock
};

/// The first steps: what they lose, how long the first took with all that comes before it (trace,
/// passes, plan, or what a peer does), what they need.
struct FirstSteps {
  double first_wall = 0, first_cpu = 0;  ///< seconds
  int64_t peak_bytes = 0;                ///< most that lives at once of what a step allocates
  std::vector<double> losses;
};

/// PyTorch with the same model, initial values and tokens, in a Python process that lives as long
/// as this object and runs steps on request: bench/peers/train_peers.py.
class PeerProcess {
 public:
  /// `trainer` has done no step; files go to `folder`, which outlives the peer.
  static Result<std::unique_ptr<PeerProcess>> Start(const std::string& python,
                                                    const std::string& peer, const Trainer& trainer,
                                                    int threads, const std::string& folder);
  ~PeerProcess();

  /// Once, before `Run`. Errors: a Python that cannot be run, or gives up.
  Result<FirstSteps> Begin();
  Result<std::vector<StepTime>> Run(int64_t steps);

 private:
  struct State;
  explicit PeerProcess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace strata::cli
