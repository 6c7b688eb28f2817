#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/result.h"
#include "runtime/train/trainer.h"

namespace strata::cli {

/// What a step costs: medians over steps, milliseconds.
struct StepCost {
  std::string name;
  double cpu = 0, wall = 0;
  double first_step =
      0;  ///< seconds from nothing to the first result: trace, passes, plan, or what a peer does
  double first_step_cpu = 0;   ///< the same in processor time; 0: not known
  int64_t peak_bytes = 0;      ///< most that lives at once of what a step allocates
  int64_t planned_bytes = 0;   ///< what the plan says of it; 0: no plan
  std::vector<double> losses;  ///< of the first steps
};

double Median(std::vector<double> values);

/// Measures PyTorch with the same model, initial values and tokens, in a Python process:
/// tests/bench/train_peers.py. `trainer` has done no step. Peers of which Python says nothing are
/// missing. Errors: a Python that cannot be run, or fails before the first peer.
Result<std::vector<StepCost>> MeasurePeers(const std::string& python, const Trainer& trainer,
                                           int threads, int64_t steps,
                                           const std::vector<std::string>& peers);

}  // namespace strata::cli
