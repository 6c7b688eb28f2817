#pragma once
#include <cstdint>
#include <string_view>

#include "passes/core/options.h"
#include "passes/core/pass.h"

namespace strata {

/// Runs products beside collectives of tensor parallelism in parts, so that the collective of one
/// part runs while the product of the next is computed.
///
///   before  m = mm(x, w)  v = reshape(m, [b, s, n])  c = cat(split(v, s/k, 1), 0)
///           r = wait(reduce_scatter(c, "sum", k, tp))
///   after   for each part i of the batch:
///             m_i = mm(x[i], w)  …  l_i = reduce_scatter(c_i, "sum", k, tp)
///           r = cat([wait(l_0), wait(l_1)], 0)
///
///   before  a = wait(all_gather(x, k, tp))  g = cat(split(a, b), 1)  v = reshape(g, [b·s, n])
///           m = mm(v, w)
///   after   all parts of x are gathered first; then for each part i:
///             g_i = cat(split(wait(l_i)), 1)  m_i = mm(reshape(g_i), w)
///           m = cat([m_0, m_1], 0); g = cat([g_0, g_1], 0) for others that read it, if any
///
/// Products are looked for through elementwise operators and views that keep rows apart: the weight
/// of a norm between gather and product. Each sum has the same terms in the same order; a library
/// may round products of fewer rows otherwise. Parts are of dimension 0, which is the batch.
///
/// Not taken: a product that others read too before its reduction, one whose other operand needs
/// the collective, a batch that parts do not divide; a gather of the last dimension from parts of
/// fewer than 1024 columns, or that others than products read. A graph in which nothing matches
/// stays as it is. Source: PyTorch's micro_pipeline_tp, torchtitan graph_trainer
/// `async_tensor_parallel_pass`.
class AsyncTensorParallel final : public Pass {
 public:
  struct Options {
    int64_t chunks = 2;
    void Bind(OptionList& list) { list.Add("chunks", chunks, "parts of each product"); }
  };
  static constexpr std::string_view kSummary =
      "run products beside gathers and reduce-scatters of the axis tp in parts";

  AsyncTensorParallel() = default;
  explicit AsyncTensorParallel(const Options& options) : options_(options) {}
  Result<Changed> Run(Module& module) override;

 private:
  Options options_;
};

}  // namespace strata
