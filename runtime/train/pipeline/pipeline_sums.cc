// The sums of a rank: gradients and further outputs of its stages, over all microbatches.
#include <utility>

#include "runtime/train/pipeline/pipeline_rank.h"

namespace strata {

using at::Tensor;

/// Of the gradients of a microbatch and its further outputs.
Status PipelineRank::AddUp(StageGraphs& stage, const Action& action, Tensors gradients) {
  gradients.resize(bound_.gradient_index.size());
  Tensors extras;
  if (const auto found = extras_.find({action.stage, action.microbatch}); found != extras_.end()) {
    extras = std::move(found->second);
    extras_.erase(found);
  }
  extras.resize(bound_.num_extras);
  return Accumulate(stage, gradients, extras);
}

Status PipelineRank::Accumulate(StageGraphs& stage, const Tensors& gradients,
                                const Tensors& extras) {
  // Sums are written in place: nothing else may have their memory.
  const auto own = [&](const Tensor& value) {
    const bool is_shared = value.storage().use_count() > 1;
    return AsGraphInput(is_shared ? value.clone(at::MemoryFormat::Contiguous) : value);
  };
  const auto take = [&](const Tensors& values, Tensors& sums) {
    bool took = false;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i].defined() || sums[i].defined()) continue;
      sums[i] = own(values[i]);
      took = true;
    }
    return took;
  };
  const bool took_gradients = take(gradients, sums_->gradients);
  if (take(extras, sums_->extras) || took_gradients || stage.accumulate.inputs.empty()) return Ok();
  Tensors all;
  for (const Tensors& values : {sums_->gradients, sums_->extras, gradients, extras})
    all.insert(all.end(), values.begin(), values.end());
  Tensors arguments;
  for (const auto& [kind, number] : stage.accumulate.inputs)
    arguments.push_back(AsGraphInput(all[number]));
  STRATA_TRY(const Tensors ignored, graphs_.Run(stage.accumulate.name, arguments));
  return Ok();
}

}  // namespace strata
