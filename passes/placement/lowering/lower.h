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
/// Some operators need more than local sizes: lookups and losses whose vocabulary is cut, attention
/// whose queries are, products over rows by expert.
/// Errors: a symbolic dimension that the ranks of an axis may not divide evenly, rows that move
/// between tokens and experts without what counts them.
class LowerPlacements final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "make the placed graphs those of one rank: local sizes, explicit collectives";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
