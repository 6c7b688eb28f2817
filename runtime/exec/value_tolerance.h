#pragma once

namespace strata {

/// Which tensors count as equal: those whose elements all lie within `ulps` ULPs, and those whose
/// elements all differ by at most `relative` times the largest magnitude of the tensor before.
/// Sums that are rounded in another order are equal in the second sense, not in the first: an
/// element close to 0 is many ULPs away.
struct ValueTolerance {
  double ulps = 0.0;
  double relative = 0.0;
};

}  // namespace strata
