#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "passes/placement/mesh.h"
#include "prove/foreign/dtensor_metadata.h"
#include "prove/foreign/relation.h"

namespace strata::prove {

/// How the ranks may hold a tensor.
struct Candidates {
  std::vector<Relation> relations;  ///< not empty
  bool is_stated = false;           ///< by a log, for every axis on which there is a choice
};

/// What a log and the sizes of a tensor, as a whole and on each rank, say of how ranks hold it. An
/// axis that is needed to explain a size cuts that dimension; on the others, ranks hold the same.
/// Parts of other sizes are those of one axis. `spec`: of the DTensor, or null.
///
/// Errors: sizes that no cut explains; a placement that is not known.
Result<Candidates> CandidatesOf(const Sizes& whole, std::span<const Sizes> local,
                                const DTensorSpec* spec, const Mesh& mesh);

}  // namespace strata::prove
