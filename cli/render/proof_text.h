#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "prove/proof.h"
#include "prove/static/placement_check.h"
#include "store/proofs.h"

namespace strata::cli {

/// The proof of one step of a run.
struct StepProof {
  std::string name;  ///< "pass 2 fuse"
  std::string graph;
  std::string ref;          ///< of the step
  int32_t pass_index = -1;  ///< -1: not a pass
  std::string pass;
  int32_t rank = 0;
  std::string single = {};  ///< of logs of ranks: the REF of the run on one device
  prove::Proof proof;
  double milliseconds = 0;
  prove::PlacementCheck placements;  ///< of `lower`; else of no nodes
  double placement_milliseconds = 0;

  /// The rules refute what evaluation proves: one of them is wrong.
  bool IsContradiction() const {
    return proof.verdict == prove::Verdict::kProven && !placements.findings.empty();
  }
};

/// `layers.3.norm: mul_7: 1/2 of the expected value`
std::string FindingText(const prove::Finding& finding);

/// Placement rules refute what evaluation proves: one of them is wrong, or a factor cancels on this
/// mesh alone.
std::string ContradictionText(std::string_view pass, std::string_view graph, std::string_view node);

/// What is recorded of a proof of `graph`, but for the index of its pass.
PassProof PassProofOf(const prove::Proof& proof, std::string_view graph);

/// One line a step, then the findings, then a summary.
std::string ProofText(const std::vector<StepProof>& proofs, int64_t seed);

/// The same as `strata.prove/1` (docs/json.md).
std::string ProofJson(const std::vector<StepProof>& proofs, std::string_view file, int64_t seed);

}  // namespace strata::cli
