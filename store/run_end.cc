#include "store/run_end.h"

#include <simdjson.h>

#include "base/json.h"

namespace strata {

namespace {

constexpr std::string_view kEndName = "end.json";

std::string EndJson(std::string_view why) {
  std::string text;
  JsonWriter(text).BeginObject().Field("why", why).EndObject();
  return text;
}

}  // namespace

Status AddRunEnd(TraceWriter& trace, RunId run, std::string_view why) {
  const std::string json = EndJson(why);
  const auto added = trace.AddArtifact(run, kEndName, kRunEndKind, json + "\n", json);
  if (!added) return added.error();
  return Ok();
}

Status AppendRunEnd(ArtifactAppender& appender, RunId run, std::string_view why) {
  return appender.Add(run, kEndName, kRunEndKind, EndJson(why));
}

std::string WhyEnded(const StoredRun& run) {
  for (const ArtifactInfo& artifact : run.artifacts) {
    if (artifact.kind != kRunEndKind) continue;
    simdjson::dom::parser parser;
    std::string_view why;
    if (parser.parse(artifact.attributes)["why"].get(why) == simdjson::SUCCESS)
      return std::string(why);
  }
  return {};
}

}  // namespace strata
