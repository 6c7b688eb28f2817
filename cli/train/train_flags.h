#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/same_file.h"
#include "cli/core/command.h"
#include "cli/train/train_outputs.h"
#include "runtime/exec/value_tolerance.h"
#include "runtime/ranks/processes/process_place.h"

namespace strata::cli {

/// What the command line of `strata train` says.
struct TrainFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::optional<std::string> init, tokens, trace;
  TrainOutputPaths outputs;
  std::optional<std::string> inputs;
  bool resume = false, overwrite = false, prove = false, prove_exact = false;
  int64_t profile = 0;
  std::string values = "none";
  ValueTolerance tolerance;
  std::optional<std::string> prove_inputs;
  std::optional<std::string> passes;
  int64_t threads = 0;
  std::vector<std::string> operators;  ///< libraries
  std::optional<std::string> control;
  bool control_wait = false;
  int64_t num_processes = 0;
  std::optional<ProcessPlace> place = std::nullopt;  // among processes that are ranks
  std::optional<int64_t> world() const {
    return place ? std::optional(place->world) : std::nullopt;
  }
  bool is_first() const { return !place || place->rank == 0; }
};

/// False: the command is done, help was printed.
Result<bool> ParseTrainFlags(Args args, TrainFlags& out);

/// The files that the flags name for results.
std::vector<NamedPath> OutputsOf(const TrainFlags& flags);

}  // namespace strata::cli
