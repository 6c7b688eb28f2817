#include "cli/prove/prove_exact.h"

#include <cstdio>
#include <string>

#include <fmt/format.h>

#include "base/unicode.h"
#include "cli/core/command.h"
#include "cli/prove/prove_stages.h"
#include "cli/render/proof_text.h"
#include "prove/prove_pass.h"
#include "prove/static/placement_check.h"

namespace strata::cli {
namespace {

Error Refuted(const PassRun& run, const Graph& after, const prove::Proof& proof) {
  return Error(
      "pass {} changes what is computed: graph {}: {}: strata prove of the recorded run lists all",
      run.name, after.name_text(), FindingText(proof.findings.front()));
}

/// What the rules of placement refute, of what evaluation does not.
Error Misplaced(const PassRun& run, const Graph& after, const prove::Proof& proof,
                const prove::PlacementFinding& finding) {
  if (proof.verdict == prove::Verdict::kProven)
    return Error(
        "{}: {}",
        ContradictionText(fmt::format("pass {}", run.name), after.name_text(), finding.node),
        prove::ToString(finding));
  return Error("pass {} changes how ranks hold a value: graph {}: {}", run.name, after.name_text(),
               prove::ToString(finding));
}

std::string RulesText(const prove::PlacementCheck& check) {
  if (check.nodes == 0) return "";
  return fmt::format("; rules give the placements of {} of {} nodes", check.nodes - check.unknown,
                     check.nodes);
}

}  // namespace

Status ProveExactly::BeforePass(const PassRun& /*run*/, const Module& module) {
  before_ = module.Clone();
  return Ok();
}

Status ProveExactly::AfterPass(const PassRun& run, const Module& module) {
  for (const GraphChange& change : run.graphs) {
    const bool is_new = change.before == Fingerprint{};
    if (!change.changed() || is_new) continue;
    const Graph& after = module.graph(change.graph);
    prove::ProofOptions options = {.stable_ids = true};
    for (const std::string& name : MakersOf(after.name_text()))
      if (const Graph* maker = before_->FindGraph(name)) options.makers.push_back(maker);
    const Graph& before = before_->graph(change.graph);
    const prove::Proof proof = prove::ProvePass(before, after, options);
    const prove::PlacementCheck rules = prove::CheckPlacements(before, after);
    // A trace that cannot be written to is reported by what records the passes.
    static_cast<void>(recording_.AddProof(run, PassProofOf(proof, after.name_text())));
    switch (proof.verdict) {
      case prove::Verdict::kProven:
        fmt::print(stderr, "proved exactly: pass {} {}: graph {}: {} values are equal{}\n",
                   run.index, run.name, Visible(after.name_text()), proof.values, RulesText(rules));
        break;
      case prove::Verdict::kDiffers:
        return Refuted(run, after, proof);
      case prove::Verdict::kUnproven:
        Warn(fmt::format("not proved: pass {} {}: graph {}: {}", run.index, run.name,
                         after.name_text(), proof.reason));
        break;
    }
    if (!rules.findings.empty()) return Misplaced(run, after, proof, rules.findings.front());
  }
  return Ok();
}

}  // namespace strata::cli
