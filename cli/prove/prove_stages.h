#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/render/proof_text.h"
#include "diff/history/history.h"
#include "prove/proof.h"

namespace strata::cli {

/// Proofs of the passes that cut a step into the stages of a pipeline: that the stages compute what
/// the step does, the halves of a backward what the backward does, and an overlap what its two
/// graphs do; and of `split-step`. These passes make new graphs, which have no graph of their name
/// before them.
/// `is_chosen`: whether to prove a step of the history.
Status ProvePipeline(const History& history, const prove::ProofOptions& options,
                     const std::function<bool(const HistoryStep&)>& is_chosen,
                     std::vector<StepProof>& proofs);

}  // namespace strata::cli
