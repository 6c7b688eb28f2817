#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/render/proof_text.h"
#include "diff/history/history.h"
#include "prove/proof.h"

namespace strata::cli {

/// Names of the graphs that compute what a graph of a pipeline stage reads, in the order in which
/// they run: of `stage1.backward_weight` `stage1.forward` and `stage1.backward_input`. Empty: it
/// reads no such values.
std::vector<std::string> MakersOf(std::string_view graph);

/// Graphs as they were at a pass, loaded.
struct MakerGraphs {
  std::vector<LoadedGraph> graphs;

  std::vector<const Graph*> pointers() const;
};
/// Those of MakersOf that the history has. `step`: of the graph that reads their values.
Result<MakerGraphs> LoadMakers(const History& history, const HistoryStep& step);

/// Proofs of the passes that cut a step into the stages of a pipeline: that the stages compute what
/// the step does, the halves of a backward what the backward does, and an overlap what its two
/// graphs do; and of `split-step`. These passes make new graphs, which have no graph of their name
/// before them.
/// `is_chosen`: whether to prove a step of the history.
Status ProvePipeline(const History& history, const prove::ProofOptions& options,
                     const std::function<bool(const HistoryStep&)>& is_chosen,
                     std::vector<StepProof>& proofs);

}  // namespace strata::cli
