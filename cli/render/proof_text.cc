#include "cli/render/proof_text.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "base/selector.h"
#include "base/unicode.h"

namespace strata::cli {
namespace {

using prove::Finding;
using prove::Verdict;

std::string_view Mark(Verdict verdict) {
  switch (verdict) {
    case Verdict::kProven:
      return "✓";
    case Verdict::kDiffers:
      return "✗";
    case Verdict::kUnproven:
      return "?";
  }
  return "";
}

/// What of the graphs was evaluated; "": all.
std::string ScopeText(const prove::Proof& proof) {
  std::string text = proof.reduced_sizes.empty() ? "" : "on reduced sizes";
  if (proof.layers_left_out > 0) {
    text +=
        fmt::format("{}{} of {} layers evaluated, the others are the same",
                    text.empty() ? "" : "; ", proof.layers - proof.layers_left_out, proof.layers);
  }
  if (proof.unchanged > 0)
    text += fmt::format("{}{} calls unchanged", text.empty() ? "" : "; ", proof.unchanged);
  return text;
}

int64_t PrecisionPlaces(const prove::Proof& proof) {
  int64_t places = 0;
  for (const prove::PrecisionChange& change : proof.precision)
    places += change.places;
  return places;
}

void AppendStep(const StepProof& proof, std::string& out) {
  const prove::Proof& result = proof.proof;
  out += fmt::format("{} {}, {}{}: ", Mark(result.verdict), Visible(proof.name),
                     Visible(proof.graph), result.mesh.empty() ? "" : " " + Visible(result.mesh));
  switch (result.verdict) {
    case Verdict::kProven:
      if (result.evaluations == 0 && result.unchanged == 0) {
        out += "unchanged";
      } else {
        out += fmt::format("{} values equal", result.values);
      }
      break;
    case Verdict::kDiffers:
      out += fmt::format("{} values compared, {} {}", result.values, result.findings.size(),
                         result.findings.size() == 1 ? "differs" : "differ");
      break;
    case Verdict::kUnproven:
      out += fmt::format("unproven: {}", Visible(result.reason));
      break;
  }
  const std::string scope = ScopeText(result);
  if (!scope.empty()) out += (result.reduced_sizes.empty() ? "; " : " ") + scope;
  std::string_view mark = "; with ";
  for (const auto& [symbol, size] : result.chosen_sizes) {
    if (result.verdict == Verdict::kUnproven) break;
    out += fmt::format("{}{} = {}", mark, Visible(symbol), size);
    mark = ", ";
  }
  if (result.not_kept > 0) out += fmt::format("; {} values after it not compared", result.not_kept);
  if (const int64_t places = PrecisionPlaces(result); places > 0)
    out += fmt::format("; rounded otherwise at {} place{}", places, places == 1 ? "" : "s");
  if (!result.opaque.empty())
    out += fmt::format("; unknown operators: {}",
                       Visible(fmt::format("{}", fmt::join(result.opaque, ", "))));
  if (const prove::PlacementCheck& check = proof.placements; check.nodes > 0)
    out += fmt::format("; rules give the placements of {} of {} nodes", check.nodes - check.unknown,
                       check.nodes);
  out += '\n';
}

void AppendPlacements(const StepProof& proof, std::string& out) {
  const std::vector<prove::PlacementFinding>& findings = proof.placements.findings;
  if (proof.IsContradiction())
    out += fmt::format("\n{}\n", ContradictionText(proof.name, proof.graph, findings[0].node));
  for (const prove::PlacementFinding& finding : findings)
    out += fmt::format("\nplacement: {}\n", Visible(prove::ToString(finding)));
}

/// The REFs that show a difference.
std::string DiffArguments(const StepProof& proof, const Finding& finding) {
  if (proof.single.empty()) return fmt::format("'{}'", proof.ref);
  return fmt::format("'{},graph={}' '{},graph={}'", proof.single,
                     SelectorValue(finding.reference_graph), proof.ref,
                     SelectorValue(finding.graph));
}

/// What proofs take for granted, each once.
void AppendAssumptions(const std::vector<StepProof>& proofs, std::string& out) {
  for (const bool is_inferred : {true, false}) {
    std::vector<std::string> texts;
    for (const StepProof& proof : proofs) {
      for (const prove::Assumption& assumption : proof.proof.assumptions) {
        const bool is_new = std::ranges::find(texts, assumption.text) == texts.end();
        if (assumption.is_inferred == is_inferred && is_new) texts.push_back(assumption.text);
      }
    }
    for (const std::string& text : texts)
      out += fmt::format("{} {}\n", is_inferred ? "inferred:" : "assumed: ", Visible(text));
  }
}

void AppendFinding(const StepProof& proof, const Finding& finding, std::string& out) {
  out += fmt::format("\ndiffers: {}\n", FindingText(finding));
  const bool is_foreign = !proof.single.empty();
  out += fmt::format("  node    {} in graph {}, {}; {}: {}\n", Visible(finding.node),
                     Visible(is_foreign ? finding.graph : proof.graph), Visible(proof.name),
                     is_foreign ? "on one device" : "before it", Visible(finding.reference));
  const prove::Diagnosis& diagnosis = finding.diagnosis;
  if (diagnosis.kind != prove::BugKind::kOther) {
    out += fmt::format("  class   {}{}{}\n", prove::ToString(diagnosis.kind),
                       diagnosis.reason.empty() ? "" : ": ", Visible(diagnosis.reason));
  }
  if (!finding.from.empty())
    out += fmt::format("  from    {}\n", Visible(fmt::format("{}", fmt::join(finding.from, ", "))));
  out += fmt::format("  see     strata diff {}\n", Visible(DiffArguments(proof, finding)));
}

void AppendPrecision(const StepProof& proof, const prove::PrecisionChange& change,
                     std::string& out) {
  out += fmt::format("\nprecision: {}{}\n",
                     change.modules.empty() ? "" : Visible(change.modules) + ": ",
                     Visible(change.what));
  out += fmt::format("  node    {} in graph {}, {}; before it: {}\n", Visible(change.node),
                     Visible(proof.graph), Visible(proof.name), Visible(change.reference));
  if (change.places > 1) out += fmt::format("  places  {}\n", change.places);
}

size_t Count(const std::vector<StepProof>& proofs, Verdict verdict) {
  return static_cast<size_t>(std::ranges::count_if(
      proofs, [&](const StepProof& step) { return step.proof.verdict == verdict; }));
}

void WriteFinding(JsonWriter& json, const StepProof& proof, const Finding& finding) {
  json.Break(4).BeginObject().Field("verdict", "differs");
  json.Field("graph", proof.single.empty() ? proof.graph : finding.graph);
  json.Key("pass");
  proof.pass_index < 0 ? json.Null() : json.Int(proof.pass_index);
  json.Field("node", finding.node).Field("reference", finding.reference);
  json.Field("module", finding.module).Field("what", finding.what);
  json.Field("class", prove::ToString(finding.diagnosis.kind));
  json.Field("reason", finding.diagnosis.reason);
  json.Key("from").BeginArray();
  for (const std::string& node : finding.from)
    json.String(node);
  json.EndArray().Field("ref", proof.ref).EndObject();
}

/// What only proofs of logs of ranks have.
void WriteForeign(JsonWriter& json, const StepProof& proof) {
  json.Field("compilation", proof.name).Field("mesh", proof.proof.mesh);
  json.Field("single", proof.single);
  for (const bool is_inferred : {true, false}) {
    json.Key(is_inferred ? "inferred" : "assumed").BeginArray();
    for (const prove::Assumption& assumption : proof.proof.assumptions)
      if (assumption.is_inferred == is_inferred) json.String(assumption.text);
    json.EndArray();
  }
}

void WritePlacements(JsonWriter& json, const StepProof& proof) {
  const prove::PlacementCheck& check = proof.placements;
  json.Key("placements").BeginObject().Field("nodes", check.nodes).Field("unknown", check.unknown);
  json.Field("ms", proof.placement_milliseconds);
  json.Field("contradiction", proof.IsContradiction()).Key("findings").BeginArray();
  for (const prove::PlacementFinding& finding : check.findings) {
    json.BeginObject().Field("node", finding.node).Field("operand", finding.operand);
    json.Field("axis", finding.axis).Field("expected", finding.expected);
    json.Field("derived", finding.derived).EndObject();
  }
  json.EndArray().EndObject();
}

void WritePrecision(JsonWriter& json, const StepProof& proof,
                    const prove::PrecisionChange& change) {
  json.Break(4).BeginObject().Field("graph", proof.graph).Key("pass");
  proof.pass_index < 0 ? json.Null() : json.Int(proof.pass_index);
  json.Field("node", change.node).Field("reference", change.reference);
  json.Field("modules", change.modules).Field("what", change.what);
  json.Field("places", change.places).Field("ref", proof.ref).EndObject();
}

}  // namespace

std::string FindingText(const Finding& finding) {
  const std::string where = finding.module.empty() ? "" : Visible(finding.module) + ": ";
  return fmt::format("{}{}: {}", where, Visible(finding.node), Visible(finding.what));
}

std::string ContradictionText(std::string_view pass, std::string_view graph,
                              std::string_view node) {
  return fmt::format(
      "error of Strata, or a factor that cancels on this mesh alone: {}, {}: placement rules and "
      "evaluation disagree at {}; please report it",
      Visible(pass), Visible(graph), Visible(node));
}

PassProof PassProofOf(const prove::Proof& proof, std::string_view graph) {
  PassProof record;
  record.graph = graph;
  record.verdict = prove::ToString(proof.verdict);
  record.what = proof.reason;
  record.scope = ScopeText(proof);
  for (const prove::Assumption& assumption : proof.assumptions)
    record.scope += fmt::format("{}if {}", record.scope.empty() ? "" : "; ", assumption.text);
  if (!proof.findings.empty()) {
    const Finding& first = proof.findings.front();
    record.node = first.node;
    record.bug = prove::ToString(first.diagnosis.kind);
    record.what = first.what;
  }
  record.what.resize(std::min(record.what.find('\n'), record.what.size()));
  return record;
}

std::string ProofText(const std::vector<StepProof>& proofs, int64_t seed) {
  std::string out;
  for (const StepProof& proof : proofs)
    AppendStep(proof, out);
  AppendAssumptions(proofs, out);
  for (const StepProof& proof : proofs) {
    for (const Finding& finding : proof.proof.findings)
      AppendFinding(proof, finding, out);
  }
  for (const StepProof& proof : proofs)
    AppendPlacements(proof, out);
  for (const StepProof& proof : proofs) {
    for (const prove::PrecisionChange& change : proof.proof.precision)
      AppendPrecision(proof, change, out);
  }
  const size_t unproven = Count(proofs, Verdict::kUnproven);
  out += fmt::format("\nproven: {} of {} steps, {}seed {}, p = 2^61-1\n",
                     Count(proofs, Verdict::kProven), proofs.size(),
                     unproven == 0 ? "" : fmt::format("{} unproven, ", unproven), seed);
  return out;
}

std::string ProofJson(const std::vector<StepProof>& proofs, std::string_view file, int64_t seed) {
  std::string out;
  JsonWriter json(out);
  const bool is_foreign = !proofs.empty() && !proofs[0].single.empty();
  json.BeginObject().Break(2).Field("schema", "strata.prove/1");
  json.Field("kind", is_foreign ? "foreign" : "passes");
  json.Break(2).Field("file", file).Field("prime", "2^61-1").Field("seed", seed);
  json.Break(2).Key("passes").BeginArray();
  for (const StepProof& proof : proofs) {
    const prove::Proof& result = proof.proof;
    json.Break(4).BeginObject().Key("index");
    proof.pass_index < 0 ? json.Null() : json.Int(proof.pass_index);
    json.Field("name", proof.pass).Field("graph", proof.graph);
    json.Field("rank", proof.rank).Field("status", prove::ToString(result.verdict));
    json.Field("values", result.values).Field("not_compared", result.not_kept);
    json.Field("layers", result.layers).Field("layers_left_out", result.layers_left_out);
    json.Field("unchanged", result.unchanged).Field("evaluations", result.evaluations);
    json.Field("ms", proof.milliseconds).Field("reason", result.reason);
    json.Key("unknown_operators").BeginArray();
    for (const std::string& op : result.opaque)
      json.String(op);
    json.EndArray().Key("reduced_sizes").BeginArray();
    for (const auto& [size, reduced] : result.reduced_sizes)
      json.BeginObject().Field("size", size).Field("reduced", reduced).EndObject();
    json.EndArray().Key("chosen_sizes").BeginObject();
    for (const auto& [symbol, size] : result.chosen_sizes)
      json.Field(symbol, size);
    json.EndObject();
    if (is_foreign) WriteForeign(json, proof);
    if (proof.placements.nodes > 0) WritePlacements(json, proof);
    json.Field("ref", proof.ref).EndObject();
  }
  json.EndArray().Break(2).Key("findings").BeginArray();
  for (const StepProof& proof : proofs) {
    for (const Finding& finding : proof.proof.findings)
      WriteFinding(json, proof, finding);
  }
  json.EndArray().Break(2).Key("precision").BeginArray();
  for (const StepProof& proof : proofs) {
    for (const prove::PrecisionChange& change : proof.proof.precision)
      WritePrecision(json, proof, change);
  }
  json.EndArray().Break(2).Key("summary").BeginObject();
  json.Field("proven", static_cast<int64_t>(Count(proofs, Verdict::kProven)));
  json.Field("differs", static_cast<int64_t>(Count(proofs, Verdict::kDiffers)));
  json.Field("unproven", static_cast<int64_t>(Count(proofs, Verdict::kUnproven)));
  json.EndObject().Break(0).EndObject();
  return out + "\n";
}

}  // namespace strata::cli
