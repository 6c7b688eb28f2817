#pragma once
#include <string>

#include "diff/model/graph_diff.h"

namespace strata {

struct PatchOptions {
  bool metadata = false;  ///< carry everything
};

/// The text of the patch that makes `diff.after` of `diff.before`. The matching decides how short
/// it is, never what it gives: lines that are not equal letter by letter are written out.
std::string MakePatch(const GraphDiff& diff, const PatchOptions& options = {});

}  // namespace strata
