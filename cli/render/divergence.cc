#include "cli/render/divergence.h"

#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "base/shell.h"
#include "base/unicode.h"
#include "cli/render/code_text.h"

namespace strata::cli {
namespace {

const HistoryStep* StepOf(const History& history, int32_t step) {
  return step < 0 ? nullptr : &history.steps[static_cast<size_t>(step)];
}

/// The step at which the runs diverge: that of the first run, or of the second where it alone has
/// it.
const HistoryStep& DivergenceStep(const Divergence& divergence, const History& a,
                                  const History& b) {
  const HistoryStep* step = StepOf(a, divergence.steps.a);
  return step != nullptr ? *step : *StepOf(b, divergence.steps.b);
}

void WriteIndex(JsonWriter& json, std::string_view key, const HistoryStep* step) {
  json.Key(key);
  step == nullptr || step->pass_index < 0 ? json.Null() : json.Int(step->pass_index);
}

void WriteName(JsonWriter& json, std::string_view key, const std::string& name) {
  json.Key(key);
  name.empty() ? json.Null() : json.String(name);
}

/// What `from` took from a cache, while `ran` ran it.
std::string CacheText(const History& ran, const History& from) {
  std::string out;
  for (const std::string& step : TakenFromCache(ran, from)) {
    out += fmt::format("  {} took from the cache: {} of {}\n", Visible(from.ref), Visible(step),
                       Visible(ran.ref));
  }
  return out;
}

std::string ExcerptText(const History& history) {
  if (!history.is_excerpt) return "";
  return fmt::format("  {} is output of TORCH_LOGS: only the graphs in it were compared\n",
                     Visible(history.ref));
}

}  // namespace

std::string DivergenceText(const std::optional<Divergence>& divergence,
                           const std::vector<CodeDifference>& code, const History& a,
                           const History& b) {
  const std::string code_text = CodeDifferencesText(code, a, b);
  if (!divergence) {
    return fmt::format("{}{} and {} agree to the end\n", code.empty() ? "" : "the graphs of ",
                       Visible(a.ref), Visible(b.ref)) +
           CacheText(a, b) + CacheText(b, a) + ExcerptText(a) + ExcerptText(b) + code_text;
  }
  const HistoryStep& step = DivergenceStep(*divergence, a, b);
  std::string out;
  if (step.pass_index >= 0) {
    out = fmt::format("the runs diverge at pass {} '{}' of graph '{}'\n", step.pass_index,
                      Visible(step.pass), Visible(divergence->graph));
  } else if (step.before < 0) {
    out = fmt::format("the runs already differ when graph '{}' arrives, before any pass on it\n",
                      Visible(divergence->graph));
  } else {
    out = fmt::format("the runs diverge between the passes on graph '{}'\n",
                      Visible(divergence->graph));
  }
  if (!divergence->node().empty()) out += fmt::format("  node {}\n", Visible(divergence->node()));
  out += fmt::format("  {}\n", Visible(divergence->what));
  if (divergence->snapshot_a >= 0 && divergence->snapshot_b >= 0) {
    std::string from = a.snapshot(divergence->snapshot_a).ref,
                to = b.snapshot(divergence->snapshot_b).ref;
    if (divergence->steps.b < 0) std::swap(from, to);  // in the direction of the pass's change
    out += fmt::format("  strata diff {} {}\n", ShellWord(from), ShellWord(to));
  }
  return out + code_text;
}

std::string DivergenceJson(const std::optional<Divergence>& divergence,
                           const std::vector<CodeDifference>& code, const History& a,
                           const History& b) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Break(2).Field("schema", "strata.bisect/1");
  json.Break(2).Field("before", a.ref).Field("after", b.ref);
  json.Break(2).Field("equal", !divergence.has_value()).Break(2);
  if (!divergence) {
    for (const char* key : {"pass", "pass_name", "graph", "node", "what"})
      json.Key(key).Null();
  } else {
    const HistoryStep& step = DivergenceStep(*divergence, a, b);
    WriteIndex(json, "pass", &step);
    WriteName(json, "pass_name", step.pass);
    json.Field("graph", divergence->graph);
    WriteName(json, "node", divergence->node());
    json.Field("what", divergence->what).Break(2);
    json.Field("inputs_differ", step.before < 0);
    WriteIndex(json, "pass_before", StepOf(a, divergence->steps.a));
    WriteIndex(json, "pass_after", StepOf(b, divergence->steps.b));
    WriteName(json, "node_before", divergence->node_a);
    WriteName(json, "node_after", divergence->node_b);
    json.Field("changes", divergence->changes);
    json.Key("refs").BeginArray();
    if (divergence->snapshot_a >= 0) json.String(a.snapshot(divergence->snapshot_a).ref);
    if (divergence->snapshot_b >= 0) json.String(b.snapshot(divergence->snapshot_b).ref);
    json.EndArray();
  }
  json.Break(2);
  WriteCodeJson(json, code, a, b);
  json.Break(0).EndObject();
  return out + "\n";
}

}  // namespace strata::cli
