#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

/// Makes a placed graph that of one rank, the same for all ranks: sizes become local, and
/// `strata.redistribute` becomes collectives, whose groups are named as mesh axes, and cuts.
///
///   before  r = strata.redistribute(w, 'R')           w: DTensor(f32[64, 64], S(0))
///   after   a = _c10d_functional.all_gather_into_tensor(w, 2, 'fsdp')     w: f32[32, 64]
///           r = _c10d_functional.wait_tensor(a)
///
/// The attributes `global` of inputs and outputs keep what the ranks' parts are parts of.
/// A graph that `place` did not see stays as it is.
/// Errors: a dimension that the ranks of an axis cannot divide evenly.
class LowerPlacements final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "make the placed graphs those of one rank: local sizes, explicit collectives";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
