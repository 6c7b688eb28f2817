#include "cli/render/proof_text.h"

#include <doctest/doctest.h>

namespace strata::cli {
namespace {

StepProof Lowering(prove::Verdict verdict) {
  StepProof step;
  step.name = "pass 3 lower";
  step.graph = "step";
  step.proof.verdict = verdict;
  step.proof.values = 12;
  step.proof.evaluations = 24;
  step.proof.reason = "mm_2";
  step.placements.nodes = 7;
  step.placements.unknown = 1;
  step.placements.findings.push_back({.node = "wait_tensor_3",
                                      .operand = "mm_2",
                                      .axis = "tp",
                                      .expected = "R",
                                      .derived = "P(sum)"});
  return step;
}

TEST_CASE("PV-31: rules that refute what evaluation proves are an error of Strata") {
  CHECK_EQ(ProofText({Lowering(prove::Verdict::kProven)}, 1),
           "✓ pass 3 lower, step: 12 values equal; rules give the placements of 6 of 7 nodes\n"
           "\n"
           "error of Strata, or a factor that cancels on this mesh alone: pass 3 lower, step: "
           "placement rules and evaluation disagree at wait_tensor_3; please report it\n"
           "\n"
           "placement: wait_tensor_3: P(sum) on tp, expected R: from mm_2\n"
           "\n"
           "proven: 1 of 1 steps, seed 1, p = 2^61-1\n");
}

TEST_CASE("PV-31: rules refute what evaluation cannot decide") {
  CHECK_EQ(ProofText({Lowering(prove::Verdict::kUnproven)}, 1),
           "? pass 3 lower, step: unproven: mm_2; rules give the placements of 6 of 7 nodes\n"
           "\n"
           "placement: wait_tensor_3: P(sum) on tp, expected R: from mm_2\n"
           "\n"
           "proven: 0 of 1 steps, 1 unproven, seed 1, p = 2^61-1\n");
}

}  // namespace
}  // namespace strata::cli
