#pragma once
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/render/proof_text.h"

namespace strata::cli {

/// What a user states of logs of ranks, in the words of `strata prove`: what is said, and of what.
using Pins = std::set<std::pair<std::string, std::string>>;

/// Reads lines as `inferred: ranks hold S(0) on world: L_x_, L_y_`; others are passed over. Errors:
/// the file cannot be read, or has no such line.
Result<Pins> ReadPins(const std::string& file);

/// What was inferred and is pinned is stated.
void ApplyPins(const Pins& pins, std::vector<StepProof>& proofs);

}  // namespace strata::cli
