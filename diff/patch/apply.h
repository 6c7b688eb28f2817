#pragma once
#include <memory>

#include "base/result.h"
#include "diff/patch/patch.h"
#include "ir/graph.h"
#include "ir/module.h"

namespace strata {

/// Builds the result; its graph 0 has the fingerprint that the patch promises. Nodes that are kept
/// or changed keep their StableId, and the metadata that the patch does not carry.
///
/// The names of `base` may be others than those that the patch shows: what it does not name keeps
/// the base's name, or gets a number where that is taken.
/// Errors: another base (both fingerprints are named); lines that contradict the base or each
/// other.
Result<std::unique_ptr<Module>> ApplyPatch(const Graph& base, const Patch& patch);

}  // namespace strata
