#pragma once
#include <memory>

#include "cli/command.h"
#include "passes/core/pass.h"
#include "runtime/exec/value_tolerance.h"
#include "store/environment.h"

namespace strata::cli {

/// The instrumentation of `--prove`, and the environment in which it runs graphs.
struct Prover {
  std::unique_ptr<PassInstrumentation> watcher;
  Environment environment;
};

/// Makes it; values within `tolerance` are equal, graphs run on `threads` threads, 0 being the
/// default.
using MakeProver = Prover (*)(const ValueTolerance& tolerance, int64_t threads);

/// `strata opt`. Without a prover, which needs LibTorch, `--prove` starts the program that has one.
Result<Exit> RunOptWith(Args args, MakeProver make_prover);

}  // namespace strata::cli
