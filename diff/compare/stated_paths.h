#pragma once
#include <string>
#include <utility>
#include <vector>

#include "diff/model/graph_diff.h"

namespace strata {

/// Where a diff pairs inputs against the parameters that they state (see StatedPath), or has a
/// parameter's input deleted and inserted: pairs, by name, of the inputs of one path and type on
/// both sides, as pins for another diff. Empty: the diff agrees with all of them.
std::vector<std::pair<std::string, std::string>> PairsOfPaths(const GraphDiff& diff);

/// How many nodes a diff touches: inserted, deleted, changed or moved. Nodes that read one value in
/// place of one other count once: one change redirects all users of a value.
int32_t CountChanges(const GraphDiff& diff);

/// Shows pins as what they are evidence of: inputs, known by their paths.
void MarkAsInputs(const std::vector<std::pair<std::string, std::string>>& pins, GraphDiff& diff);

}  // namespace strata
