#pragma once
#include <doctest/doctest.h>

namespace strata::testing {

/// A time of a timeline, whose sums round.
inline doctest::Approx Us(double us) {
  return doctest::Approx(us).epsilon(1e-3);
}

}  // namespace strata::testing
