#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/module.h"
#include "passes/placement/mesh.h"

namespace strata::cli {

/// The graphs of a training on the ranks of `mesh`, as `place` gets them: after the cleanup passes,
/// with the batches of all ranks. Errors: those of the configuration and the tracer; an axis that
/// has no degree.
Result<std::unique_ptr<Module>> TraceForPlacement(const std::string& config,
                                                  const std::vector<std::string>& overrides,
                                                  const Mesh& mesh);

/// `batch_size` of the configuration.
Result<int64_t> BatchSizeOfConfig(const std::string& config,
                                  const std::vector<std::string>& overrides);

}  // namespace strata::cli
