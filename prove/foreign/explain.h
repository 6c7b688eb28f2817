#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "prove/foreign/attempt.h"
#include "prove/proof.h"

namespace strata::prove {

struct ExplainOptions {
  uint64_t seed = 1;
  size_t max_findings = 20;
};

/// What is wrong in an attempt: for each output that differs, the node that made it so. None: all
/// outputs are as expected.
Result<std::vector<Finding>> Explain(const ForeignSetup& setup, const CompiledProgram& single,
                                     std::span<const CompiledProgram> ranks, const Attempt& attempt,
                                     const ExplainOptions& options);

}  // namespace strata::prove
