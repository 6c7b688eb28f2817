#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/train/trainer.h"

namespace strata::cli {

/// PyTorch with the model, the initial values and the tokens of a training.
struct PeerRequest {
  std::string name;                       ///< what the script calls it; unique in a folder
  std::string script = "train_peers.py";  ///< in bench/peers/
  int threads = 1;                        ///< inside operators
};

/// The interpreter that `./dev setup bench` made; "", with a warning: there is none.
std::string FindPeerPython();

/// Writes what a peer reads to `folder`, which outlives it. Returns its command, of a Worker.
/// REQUIRES: `trainer` is not compiled.
Result<std::vector<std::string>> PeerCommand(const std::string& python, const PeerRequest& request,
                                             const Trainer& trainer, const std::string& folder);

}  // namespace strata::cli
