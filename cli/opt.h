#pragma once
#include <memory>

#include "cli/command.h"
#include "passes/core/pass.h"

namespace strata::cli {

/// Makes the instrumentation of `--prove`; values within `ulps` ULPs are equal.
using MakeProver = std::unique_ptr<PassInstrumentation> (*)(double ulps);

/// `strata opt`. Without a prover, which needs LibTorch, `--prove` starts the program that has one.
Result<Exit> RunOptWith(Args args, MakeProver make_prover);

}  // namespace strata::cli
