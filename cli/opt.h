#pragma once
#include <memory>

#include "cli/command.h"
#include "passes/core/pass.h"

namespace strata::cli {

/// Makes what `--prove` watches passes with; differences up to `ulps` are none.
using MakeProver = std::unique_ptr<PassInstrumentation> (*)(double ulps);

/// `strata opt`. Without a prover, which needs LibTorch, `--prove` starts the program that has one.
Result<Exit> RunOptWith(Args args, MakeProver make_prover);

}  // namespace strata::cli
