#include "runtime/models/sequence.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "runtime/trace/scope.h"

namespace strata {

using at::Tensor;

Sequence MakeSequence(const Tensor& positions, const Tensor& rope_table,
                      std::source_location location) {
  if (!positions.defined()) return {.rope = rope_table, .mask = {}};
  const int64_t batch = positions.size(0);
  const int64_t seq = positions.size(1);
  Sequence sequence;
  {
    ModuleScope scope("rope", location);
    sequence.rope = rope_table.index_select(0, positions.flatten()).unflatten(0, {batch, seq});
  }
  ModuleScope scope("attention_mask", location);
  const Tensor document = positions.eq(0).cumsum(1);  // [batch, seq]
  const Tensor is_same = document.unsqueeze(2).eq(document.unsqueeze(1));
  const Tensor is_before = at::ones({seq, seq}, positions.options().dtype(at::kBool)).tril();
  sequence.mask = at::zeros({batch, seq, seq}, positions.options().dtype(at::kFloat))
                      .masked_fill(~(is_same & is_before), -std::numeric_limits<double>::infinity())
                      .unsqueeze(1);
  return sequence;
}

}  // namespace strata
