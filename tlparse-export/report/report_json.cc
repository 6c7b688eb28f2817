#include <algorithm>

#include <fmt/format.h>

#include "base/json.h"
#include "tlparse-export/report/report_model.h"
#include "tlparse-export/report/texts.h"

namespace strata {
namespace {

void AppendText(std::string_view key, std::string_view text, JsonWriter& json) {
  json.Field(key, Texts::Cut(text));
}

void AppendSnapshot(std::string_view key, const ReportSnapshot& snapshot, JsonWriter& json) {
  json.Key(key).BeginObject().Field("nodes", snapshot.nodes);
  json.Field("fingerprint", snapshot.fingerprint).Field("facts", snapshot.facts);
  if (!snapshot.program.empty()) json.Field("program", snapshot.program);
  json.Field("peak", snapshot.peak).Field("flops", snapshot.flops).EndObject();
}

void AppendCounts(const ChangeCounts& counts, int64_t derived, JsonWriter& json) {
  json.Key("counts").BeginArray().Int(counts.inserted).Int(counts.deleted);
  json.Int(counts.changed).Int(counts.moved).Int(derived).EndArray();
}

void AppendPass(const ReportPass& pass, JsonWriter& json) {
  json.BeginObject().Field("index", pass.index);
  AppendText("name", pass.name, json);
  AppendText("options", pass.options, json);
  AppendText("graph", pass.graph, json);
  json.Field("status", pass.status);
  AppendText("proof", pass.proof, json);
  json.Field("ms", static_cast<double>(pass.wall_ns) / 1e6);
  AppendSnapshot("before", pass.before, json);
  AppendSnapshot("after", pass.after, json);
  AppendCounts(pass.counts, pass.derived, json);
  json.Key("causes").BeginArray();
  for (const ReportCause& cause : pass.causes) {
    json.BeginObject();
    AppendText("title", cause.title, json);
    AppendText("where", cause.where, json);
    json.Key("except").BeginArray();
    for (const auto& [place, what] : cause.except)
      json.BeginArray().String(Texts::Cut(place)).String(Texts::Cut(what)).EndArray();
    json.EndArray().Field("places", cause.places).Field("nodes", cause.nodes);
    AppendCounts(cause.counts, 0, json);
    json.EndObject();
  }
  json.EndArray();
  AppendText("error", pass.error, json);
  AppendText("reproduce", pass.reproduce, json);
  AppendText("ref", pass.selector, json);
  json.Field("detail", pass.detail).EndObject();
}

void AppendRun(const ReportRun& run, JsonWriter& json) {
  json.BeginObject().Field("id", run.id).Field("kind", run.kind).Field("status", run.status);
  AppendText("source", run.source, json);
  AppendText("command", run.command, json);
  AppendText("pipeline", run.pipeline, json);
  json.Field("rank", run.rank).Field("world", run.world).Field("ranks", run.ranks);
  json.Field("is_of_all_ranks", run.is_of_all_ranks);
  json.Key("graphs").BeginArray();
  for (const ReportGraph& graph : run.graphs) {
    json.BeginObject();
    AppendText("name", graph.name, json);
    AppendText("ref", graph.selector, json);
    AppendSnapshot("last", graph.last, json);
    json.Field("detail", graph.detail).EndObject();
  }
  json.EndArray().Key("passes").BeginArray();
  for (const ReportPass& pass : run.passes)
    AppendPass(pass, json);
  json.EndArray().Key("stages").BeginArray();
  for (const ReportStage& stage : run.stages) {
    json.BeginObject();
    AppendText("from", stage.from, json);
    AppendText("graph", stage.graph, json);
    AppendSnapshot("before", stage.before, json);
    AppendSnapshot("after", stage.after, json);
    AppendCounts(stage.counts, stage.derived, json);
    AppendText("ref", stage.selector, json);
    AppendText("base", stage.base, json);
    json.Field("compared", stage.compared).Field("detail", stage.detail).EndObject();
  }
  json.EndArray().Key("executed").BeginArray();
  for (size_t i = 0; i < run.executed.size(); ++i) {
    const ExecutedRange& range = run.executed[i];
    json.BeginObject();
    AppendText("graph", range.graph, json);
    json.Field("first", range.first_step).Field("last", range.last_step);
    json.Field("fingerprint", ToString(range.fingerprint));
    AppendText("ref", run.executed_selectors[i], json);
    json.EndObject();
  }
  constexpr size_t kMaxEvents = 200;
  json.EndArray().Key("events").BeginArray();
  for (size_t i = 0; i < std::min(run.events.size(), kMaxEvents); ++i) {
    const CompileEvent& event = run.events[i];
    json.BeginArray();
    for (const std::string& text :
         {"[" + event.compile + "]", event.what, event.function, event.reason})
      json.String(Texts::Cut(text));
    json.EndArray();
  }
  json.EndArray().Field("event_words", CompileEventsText(run.events));
  json.Key("steps").BeginArray();
  for (const StepRecord& step : run.steps) {
    json.BeginArray().Int(step.step).Double(step.loss).Double(step.grad_norm);
    json.Double(static_cast<double>(step.wall_ns) / 1e6).EndArray();
  }
  json.EndArray().EndObject();
}

void AppendRankPair(const ReportRankPair& pair, JsonWriter& json) {
  json.BeginObject();
  AppendText("name", pair.name, json);
  AppendText("graph", pair.graph, json);
  json.Field("index", pair.index).Field("run", pair.run);
  AppendSnapshot("before", pair.before, json);
  AppendSnapshot("after", pair.after, json);
  AppendCounts(pair.counts, pair.derived, json);
  AppendText("ref", pair.selector, json);
  AppendText("base", pair.base, json);
  json.Field("detail", pair.detail).EndObject();
}

}  // namespace

std::string MainJson(const ReportModel& model) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject();
  AppendText("title", model.title, json);
  json.Key("runs").BeginArray();
  for (const ReportRun& run : model.runs)
    AppendRun(run, json);
  json.EndArray().Key("rank_pairs").BeginArray();
  for (const ReportRankPair& pair : model.rank_pairs)
    AppendRankPair(pair, json);
  json.EndArray().Key("code").BeginArray();
  for (const ReportCode& code : model.code)
    json.BeginArray().String(code.title).String(code.text).EndArray();
  json.EndArray().Key("log_tables").BeginArray();
  for (const LogTable& table : model.log_tables)
    AppendJson(table, json);
  json.EndArray().Key("barcodes").BeginArray();
  for (const std::string& barcode : model.barcodes)
    json.String(barcode);
  json.EndArray().Key("left_out").BeginArray();
  for (const std::string& what : model.left_out)
    json.String(Texts::Cut(what));
  json.EndArray().EndObject();
  return out;
}

}  // namespace strata
