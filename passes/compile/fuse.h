#pragma once
#include <cstdint>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Makes one kernel of operators that compute element by element, and of reductions over rows.
///
///   before  a = add(x, y)  b = pow(a, 2)  m = mean(b, [2])  r = rsqrt(m)  c = mul(a, r)
///   after   kernel_0 = attr kernel_0(graph(1))
///           (a, c) = strata.fused(kernel_0, x, y)           // graph 1: the five nodes
///
/// The body is an ordinary graph of the operators that were replaced; equal bodies are one. What a
/// body means is what its operators mean, so that it can also be executed node by node.
/// `numerics=bitwise` takes only operators whose formulas are bitwise equal to ATen; `fast` also
/// functions (exp), softmax and any sum, within the tolerance of another order of summation, and
/// says so on the node: `fast=True`. It marks matrix products, too, which then take the fastest
/// library (passes/compile/fast_products.h). Regions (passes/regions) are fused inside, never
/// across their borders. In-place operators on inputs stay in place; others become results of their
/// own. Operands, results and writes keep their order; nodes move only as far as the kernel needs.
class Fuse final : public Pass {
 public:
  enum class Numerics : uint8_t { kBitwise, kFast };
  struct Options {
    Numerics numerics = Numerics::kBitwise;
    int64_t min_nodes = 2;
    int64_t max_arguments = 32;
    void Bind(OptionList& list) {
      list.Add("numerics", numerics, {{"bitwise", Numerics::kBitwise}, {"fast", Numerics::kFast}},
               "bitwise equal to the operators, or equal within rounding");
      list.AddCount("min", min_nodes, "least number of operators per kernel");
      list.AddCount("arguments", max_arguments,
                    "greatest number of operands and results per kernel");
    }
  };
  static constexpr std::string_view kSummary =
      "merge elementwise operators and row reductions into kernels";

  Fuse() = default;
  explicit Fuse(const Options& options) : options_(options) {}
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
