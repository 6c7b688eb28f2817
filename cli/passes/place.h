#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cli/core/command.h"
#include "ir/module.h"
#include "passes/placement/mesh.h"

namespace strata::cli {

/// Traces the training that a configuration describes, for the ranks of a mesh, up to the passes
/// that place it. `overrides`: of fields, KEY=VALUE.
using TraceForMesh = Result<std::unique_ptr<Module>> (*)(const std::string& config,
                                                         const std::vector<std::string>& overrides,
                                                         const Mesh& mesh);

/// Sequences of a rank that a configuration asks for.
using BatchSizeOf = Result<int64_t> (*)(const std::string& config,
                                        const std::vector<std::string>& overrides);

struct PlaceTracer {
  TraceForMesh trace = nullptr;
  BatchSizeOf batch_size = nullptr;
};

/// `strata place`. Without a tracer, which needs LibTorch, configurations start the program that
/// has one.
Result<Exit> RunPlaceWith(Args args, const PlaceTracer& tracer);

}  // namespace strata::cli
