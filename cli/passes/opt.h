#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/core/command.h"
#include "passes/core/pass.h"
#include "runtime/exec/value_tolerance.h"
#include "store/environment.h"

namespace strata::cli {

/// The instrumentation of `--prove`, and the environment in which it runs graphs.
struct Prover {
  std::unique_ptr<PassInstrumentation> watcher;
  Environment environment;
};

/// What `--prove` is given.
struct ProveFlags {
  ValueTolerance tolerance;
  std::optional<std::string> inputs;   ///< a safetensors file; none: inputs are synthetic
  int64_t threads = 0;                 ///< 0: the default
  std::vector<std::string> operators;  ///< libraries
};

/// Makes it. Errors: a file that cannot be read.
using MakeProver = Result<Prover> (*)(const ProveFlags& flags);

/// `strata opt`. Without a prover, which needs LibTorch, `--prove` starts the program that has one.
Result<Exit> RunOptWith(Args args, MakeProver make_prover);

}  // namespace strata::cli
