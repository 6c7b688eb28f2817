#pragma once
#include <string_view>

#include "passes/core/pass.h"

namespace strata {

// All passes of this file visit programs, not bodies of higher-order nodes, once from the first
// node to the last. What they remove is a view that is its input in all but name, so results are
// bitwise equal, also when an alias is written to. A view stays where an alias' own shape or
// strides are changed in place (`t_`, `unsqueeze_`, …): there the view distinguishes the two.
// Source: torchtitan's canonicalize_graph_pass and its five parts.

/// Removes `detach`: execution is without autograd.
///
///   before  d = detach(relu)  n = neg(d)
///   after   n = neg(relu)
class RemoveDetach final : public Pass {
 public:
  static constexpr std::string_view kSummary = "replace detach by its input";

  Result<Changed> Run(Module& module) override;
};

/// Removes `view`, `reshape` and `_unsafe_view` to the shape that the input already has.
///
///   before  v = view(x, [2, 3, 8])  r = relu(v)      x: f32[2, 3, 8]
///   after   r = relu(x)
///
/// Sizes must be provably equal for all values of their symbols; strides are not compared, since an
/// equal shape is always viewable. Unknown types keep the view.
class RemoveIdentityViews final : public Pass {
 public:
  static constexpr std::string_view kSummary = "remove views to the shape of their input";

  Result<Changed> Run(Module& module) override;
};

/// Removes pairs of `t`, which is its own inverse for up to two dimensions, and pairs of
/// `transpose` that exchange the same two.
///
///   before  a = t(x)  b = t(a)  r = relu(b)
///   after   r = relu(x)
///
/// The inner one stays while something else reads it.
class RemoveDoubleTransposes final : public Pass {
 public:
  static constexpr std::string_view kSummary = "remove t of t, and transpose of transpose";

  Result<Changed> Run(Module& module) override;
};

/// Removes slices that take a whole dimension.
///
///   before  s = slice(x, 0, 0, 9223372036854775807)  r = relu(s)
///   after   r = relu(x)
///
/// Starts and ends that are left out or None are 0 and the size. Bounds that are computed by the
/// graph, or not provably beyond the size, keep the slice.
class RemoveIdentitySlices final : public Pass {
 public:
  static constexpr std::string_view kSummary = "remove slices of a whole dimension";

  Result<Changed> Run(Module& module) override;
};

/// Writes `view` and `_unsafe_view` as `reshape`, so that later passes know one spelling.
///
///   before  a = view(x, [6, 8])     b = _unsafe_view(y, [6, 8])
///   after   a = reshape(x, [6, 8])  b = reshape(y, [6, 8])
///
/// Where a view is possible, reshape is a view: both alias their input.
class NormalizeViews final : public Pass {
 public:
  static constexpr std::string_view kSummary = "write view and _unsafe_view as reshape";

  Result<Changed> Run(Module& module) override;
};

/// The five passes above, in their order, until nothing changes. Patterns of later passes are
/// written for its result.
///
///   before  d = detach(w)  t1 = t(d)  t2 = t(t1)  v = _unsafe_view(x, [6, 8])  m = mm(v, t2)
///   after   v = reshape(x, [6, 8])  m = mm(v, w)
class Canonicalize final : public Pass {
 public:
  static constexpr std::string_view kSummary =
      "remove detach, identity views, double transposes, identity slices; write views as reshape";

  Result<Changed> Run(Module& module) override;
};

}  // namespace strata
