#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/same_file.h"
#include "runtime/config/config.h"

namespace strata::cli {

/// The files and folders that a training with `config` reads, `init` and `tokens` being those of
/// the command line.
std::vector<NamedPath> TrainInputs(const std::string& config_path, const TrainConfig& config,
                                   const std::optional<std::string>& init,
                                   const std::optional<std::string>& tokens);

}  // namespace strata::cli
