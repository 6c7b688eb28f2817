#pragma once
#include <string>
#include <vector>

#include "cli/core/command.h"

namespace strata::cli {

/// Overrides of a configuration as torchtitan's users write them, as `--set` options; other words
/// stay:
///
///     --training.steps 100 --lr_scheduler.min-lr-factor=0.1   --set training.steps=100 --set …
///     --checkpoint.enable --metrics.no-enable-tensorboard     --set checkpoint.enable=true --set …
///
/// An option without a value stands before another option or at the end.
std::vector<std::string> WithSetOptions(Args args);

}  // namespace strata::cli
