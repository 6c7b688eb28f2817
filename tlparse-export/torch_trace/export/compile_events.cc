#include "tlparse-export/torch_trace/export/compile_events.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tlparse-export/torch_trace/export/stored_records.h"
#include "tlparse-export/torch_trace/read/python_json.h"

namespace strata {
namespace {

constexpr std::string_view kMetrics = "compilation_metrics";
constexpr std::string_view kBreakReason = "dynamo_graph_break_reason";

/// Reasons of graph breaks, by compilation and attempt.
using Breaks = std::map<std::string, std::vector<std::string>>;

std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

/// `0/0: tensor 'x' size mismatch …` without the compilation whose guard failed.
std::string_view WithoutCompilation(std::string_view reason) {
  const size_t colon = reason.find(": ");
  const bool is_id =
      colon != std::string_view::npos &&
      reason.substr(0, colon).find_first_not_of("0123456789/_") == std::string_view::npos;
  return is_id ? reason.substr(colon + 2) : reason;
}

/// Dynamo starts a function again after a graph break, and when it learns that sizes vary.
bool IsGraphBreak(std::string_view reason) {
  return reason.find("graph break") != std::string_view::npos ||
         reason.find("graph-break") != std::string_view::npos;
}

/// `Data-dependent branching (model.py:4)`.
std::string ReasonOfBreak(std::string_view text) {
  const auto after = [&](std::string_view key) {
    const size_t at = text.find(key);
    return at == std::string_view::npos ? "" : FirstLine(text.substr(at + key.size()));
  };
  const std::string reason = after("Graph Break Reason: "), place = after("in user code at ");
  if (place.empty()) return reason;
  return fmt::format("{} ({})", reason, place.substr(place.rfind('/') + 1));
}

Result<Breaks> ReadBreaks(TraceReader& trace, const StoredRun& run) {
  Breaks breaks;
  for (const ArtifactInfo& artifact : run.artifacts) {
    if (artifact.name != kBreakReason) continue;
    STRATA_TRY(const std::string text, trace.LoadArtifact(artifact.id));
    breaks[CompileOf(artifact)].push_back(ReasonOfBreak(text));
  }
  return breaks;
}

void AddEvents(const StoredRecord& record, const Breaks& breaks,
               std::vector<CompileEvent>& events) {
  const auto envelope = ReadJsonObject(record.envelope).value_or(std::vector<JsonField>{});
  const auto metrics =
      ReadJsonObject(FieldValue(envelope, kMetrics)).value_or(std::vector<JsonField>{});
  const auto text = [&](std::string_view key) {
    return ReadJsonString(FieldValue(metrics, key)).value_or("");
  };
  const std::string function = text("co_name");
  const auto add = [&](std::string_view what, std::string_view reason) {
    events.push_back({record.compile, std::string(what), function, FirstLine(reason)});
  };
  if (const std::string reason = text("recompile_reason"); !reason.empty())
    add("recompiled", WithoutCompilation(reason));
  const auto restarts = ReadJsonArray(FieldValue(metrics, "restart_reasons"))
                            .value_or(std::vector<std::string_view>{});
  for (const std::string_view restart : restarts) {
    const std::string reason = ReadJsonString(restart).value_or("");
    add(IsGraphBreak(reason) ? "graph break" : "restarted", reason);
  }
  // Where Dynamo can go on behind the break it does not start again.
  if (const auto found = breaks.find(record.compile); found != breaks.end()) {
    for (const std::string& reason : found->second)
      add("graph break", reason);
  }
  if (const std::string type = text("fail_type"); !type.empty()) {
    const std::string reason = text("fail_reason");
    // `backend='x' raised:` says nothing without the line below it.
    const std::string first = FirstLine(reason);
    const bool goes_on = first.ends_with(':') && first.size() < reason.size();
    const std::string rest = goes_on ? " " + FirstLine(reason.substr(first.size() + 1)) : "";
    add("failed", fmt::format("{}: {}{}", type, first, rest));
  }
}

}  // namespace

Result<std::vector<CompileEvent>> ReadCompileEvents(TraceReader& trace, const StoredRun& run) {
  STRATA_TRY(const std::vector<StoredRecord> records, ReadStoredRecords(trace, run, kMetrics));
  STRATA_TRY(const Breaks breaks, ReadBreaks(trace, run));
  std::vector<CompileEvent> events;
  for (const StoredRecord& record : records)
    AddEvents(record, breaks, events);
  return events;
}

std::string_view CompilationOf(const SnapshotInfo& snapshot) {
  constexpr std::string_view kKey = "\"compile\": \"";
  const std::string_view attributes = snapshot.attributes;
  const size_t at = attributes.find(kKey);
  if (at == std::string_view::npos) return {};
  const std::string_view value = attributes.substr(at + kKey.size());
  return value.substr(0, value.find('"'));
}

std::string CompileEventsText(const std::vector<CompileEvent>& events) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view what, std::string_view one, std::string_view many) {
    const auto count = std::ranges::count(events, what, &CompileEvent::what);
    if (count > 0) parts.push_back(fmt::format("{} {}", count, count == 1 ? one : many));
  };
  add("failed", "compilation failed", "compilations failed");
  add("recompiled", "recompilation", "recompilations");
  add("graph break", "graph break", "graph breaks");
  add("restarted", "restart", "restarts");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace strata
