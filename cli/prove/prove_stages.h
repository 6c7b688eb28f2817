#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/render/proof_text.h"
#include "diff/history/history.h"
#include "prove/proof.h"
#include "prove/stages.h"

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

/// Graphs that a pass cut out of one, loaded.
struct LoadedCut {
  HistoryStep step;   ///< that made them
  std::string graph;  ///< the name of what they were cut out of
  LoadedGraph whole;
  std::vector<LoadedGraph> graphs;
  std::vector<int64_t> stages;  ///< of `graphs`
  prove::Originals originals;
  prove::Returned returned = prove::Returned::kStep;
  bool on_own_ranks = false;

  std::vector<prove::StagePart> Parts() const;
  prove::StageCut CutOf(std::span<const prove::StagePart> parts) const;
};
/// What the passes of a run cut: a step into stages and the halves of their backward, or into
/// forward and backward; an update among ranks. `is_chosen`: whether to load what a step made.
Result<std::vector<LoadedCut>> LoadCuts(const History& history,
                                        const std::function<bool(const HistoryStep&)>& is_chosen);

/// Proofs of the passes that cut a step into the stages of a pipeline: that the stages compute what
/// the step does, the halves of a backward what the backward does, and an overlap what its two
/// graphs do; of `split-step` and `split-optimizer`. These passes make new graphs, which have no
/// graph of their name before them. `is_chosen`: whether to prove a step of the history.
Status ProvePipeline(const History& history, const prove::ProofOptions& options,
                     const std::function<bool(const HistoryStep&)>& is_chosen,
                     std::vector<StepProof>& proofs);

}  // namespace strata::cli
