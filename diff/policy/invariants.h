#pragma once
#include <string>
#include <string_view>

#include "diff/model/graph_diff.h"

namespace strata {

/// How a diff breaks an invariant of a policy: "2 outputs, not 1"; "": it holds. `name`: one that a
/// policy may name, `same_inputs`, `same_outputs`, `same_collectives`, `same_mutations` or
/// `no_new_targets`.
std::string BrokenInvariant(const GraphDiff& diff, std::string_view name);

}  // namespace strata
